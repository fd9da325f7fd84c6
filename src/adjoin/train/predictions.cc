#include "adjoin/train/predictions.h"

#include "adjoin/data/transform.h"
#include "adjoin/report/picture.h"

namespace adjoin::train {
namespace {

constexpr int64_t kSamples = 12;
constexpr int64_t kPictureSide = 96;  // at most

/// The picture that a normalised image (C, H, W) was made from.
std::string picture_of(const torch::Tensor& image, const Preprocessing& preprocessing) {
  auto seen = data::denormalised(image.to(torch::kCPU, torch::kFloat32), preprocessing);
  const int64_t side = std::min(kPictureSide, seen.size(1));
  seen = torch::adaptive_avg_pool2d(seen.unsqueeze(0), {side, side}).squeeze(0);
  // Other counts of channels have no colours: their mean is shown.
  if (seen.size(0) != 3) seen = seen.mean(0, /*keepdim=*/true);
  const auto bytes =
      (seen * 255).round().clamp(0, 255).to(torch::kUInt8).permute({1, 2, 0}).contiguous();
  return report::png_data_uri(side, side, bytes.size(2),
                              {bytes.data_ptr<uint8_t>(), static_cast<size_t>(bytes.numel())});
}

std::vector<double> numbers(const torch::Tensor& row) {
  return {row.data_ptr<double>(), row.data_ptr<double>() + row.numel()};
}

}  // namespace

Predictions::Predictions(const io::ModelHeader& header, std::vector<std::string> networks)
    : header_(header),
      networks_(std::move(networks)),
      sums_(torch::zeros({static_cast<int64_t>(networks_.size()) + 1, header.spec.num_classes},
                         torch::kFloat64)) {}

void Predictions::add(const data::Batch& batch, const std::vector<torch::Tensor>& logits) {
  if (!sums_.device().is_cuda() && batch.labels.is_cuda()) sums_ = sums_.to(batch.labels.device());
  const auto is_read = (batch.labels >= 0).to(torch::kFloat64);
  const auto labels = batch.labels.clamp_min(0);
  for (size_t k = 0; k < logits.size(); ++k) {
    const auto is_right = (logits[k].argmax(1) == batch.labels).to(torch::kFloat64);
    sums_[static_cast<int64_t>(k)].index_add_(0, labels, is_right);
  }
  sums_[-1].index_add_(0, labels, is_read);
  add_samples(batch, logits);
}

/// The first images, no class more often than its share.
void Predictions::add_samples(const data::Batch& batch, const std::vector<torch::Tensor>& logits) {
  const int64_t classes = header_.spec.num_classes;
  const int64_t most_of_a_class = (kSamples + classes - 1) / classes;
  if (static_cast<int64_t>(samples_.size()) == kSamples) return;
  const auto labels = batch.labels.cpu();
  for (int64_t i = 0; i < labels.size(0) && static_cast<int64_t>(samples_.size()) < kSamples; ++i) {
    const auto label = labels[i].item<int64_t>();
    if (label < 0 || taken_[label] == most_of_a_class) continue;
    ++taken_[label];
    Json answers = Json::object();
    for (size_t k = 0; k < networks_.size(); ++k) {
      const auto [probability, guess] = torch::softmax(logits[k][i].to(torch::kFloat32), 0).max(0);
      answers[networks_[k]] = {{"class", guess.item<int64_t>()},
                               {"probability", probability.item<double>()}};
    }
    samples_.push_back({{"image", picture_of(batch.images[i], header_.preprocessing)},
                        {"label", label},
                        {"answers", answers}});
  }
}

void Predictions::finish(Group& group) {
  group.sum(sums_);
  sums_ = sums_.cpu();
}

Json Predictions::to_json() const {
  Json result = {{"classes", header_.classes}, {"images", numbers(sums_[-1])}};
  for (size_t k = 0; k < networks_.size(); ++k) {
    const auto share = sums_[static_cast<int64_t>(k)] / sums_[-1].clamp_min(1);
    result["correct"][networks_[k]] = numbers(100 * share);
  }
  result["samples"] = samples_;
  return result;
}

}  // namespace adjoin::train
