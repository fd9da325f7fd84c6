#include "adjoin/train/predictions.h"

#include "adjoin/models/forward.h"
#include "adjoin/report/picture.h"
#include "adjoin/tensor/device.h"

namespace adjoin::train {
namespace {

constexpr size_t kSamples = 12;
constexpr int64_t kPictureSide = 96;  // at most

/// The picture that a normalised image (C, H, W) was made from.
std::string picture_of(const torch::Tensor& image, const Preprocessing& preprocessing) {
  const auto vector = [](const std::vector<double>& values) {
    return torch::tensor(values, torch::kFloat32).view({-1, 1, 1});
  };
  auto seen = image.to(torch::kCPU, torch::kFloat32) * vector(preprocessing.std) +
              vector(preprocessing.mean);
  const int64_t side = std::min(kPictureSide, seen.size(1));
  seen = torch::adaptive_avg_pool2d(seen.unsqueeze(0), {side, side}).squeeze(0);
  // Other counts of channels have no colours: their mean is shown.
  if (seen.size(0) != 3) seen = seen.mean(0, /*keepdim=*/true);
  const auto bytes =
      (seen * 255).round().clamp(0, 255).to(torch::kUInt8).permute({1, 2, 0}).contiguous();
  return report::png_data_uri(side, side, bytes.size(2),
                              {bytes.data_ptr<uint8_t>(), static_cast<size_t>(bytes.numel())});
}

/// A few images, no class more often than its share.
class Samples {
 public:
  Samples(const io::ModelHeader& header, const std::vector<EvaluatedNetwork>& networks)
      : header_(header),
        networks_(networks),
        most_per_class_((static_cast<int64_t>(kSamples) + header.spec.num_classes - 1) /
                        header.spec.num_classes) {}

  /// `probabilities`: of each network (B, classes).
  void add(const data::Batch& batch, const std::vector<torch::Tensor>& probabilities) {
    if (list_.size() == kSamples) return;
    const auto labels = batch.labels.cpu();
    for (int64_t i = 0; i < labels.size(0) && list_.size() < kSamples; ++i) {
      const auto label = labels[i].item<int64_t>();
      if (label < 0 || taken_[label] == most_per_class_) continue;
      ++taken_[label];
      Json answers = Json::object();
      for (size_t k = 0; k < networks_.size(); ++k) {
        const auto [probability, guess] = probabilities[k][i].max(0);
        answers[networks_[k].name] = {{"class", guess.item<int64_t>()},
                                      {"probability", probability.item<double>()}};
      }
      list_.push_back({{"image", picture_of(batch.images[i], header_.preprocessing)},
                       {"label", label},
                       {"answers", answers}});
    }
  }

  const std::vector<Json>& list() const { return list_; }

 private:
  const io::ModelHeader& header_;
  const std::vector<EvaluatedNetwork>& networks_;
  int64_t most_per_class_;
  std::map<int64_t, int64_t> taken_;
  std::vector<Json> list_;
};

std::vector<double> numbers(const torch::Tensor& row) {
  const auto values = row.to(torch::kCPU, torch::kFloat64).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

}  // namespace

Json predictions(const std::vector<EvaluatedNetwork>& networks, data::Loader& loader,
                 const io::ModelHeader& header, const Compute& compute, Group& group) {
  const torch::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(networks.size());
  // A row of correct answers for each network, then one of images.
  auto sums = torch::zeros({count + 1, header.spec.num_classes},
                           torch::TensorOptions(compute.device).dtype(torch::kFloat64));
  Samples samples(header, networks);
  nn::Constants constants;
  nn::Context context;
  context.constants = &constants;
  loader.begin(0);
  for (int64_t i = 0; i < loader.steps(); ++i) {
    const data::Batch batch = loader.next();
    if (batch.images.size(0) == 0) continue;
    const auto is_read = (batch.labels >= 0).to(torch::kFloat64);
    const auto labels = batch.labels.clamp_min(0);
    const Autocast autocast(compute.device, compute.has_autocast());
    const auto images = batch.images.to(compute.weight_type());
    std::vector<torch::Tensor> probabilities;
    for (int64_t k = 0; k < count; ++k) {
      const EvaluatedNetwork& network = networks[static_cast<size_t>(k)];
      const auto logits = models::forward(network.spec, network.weights, images, context).logits();
      probabilities.push_back(torch::softmax(logits.to(torch::kFloat32), 1));
      sums[k].index_add_(0, labels,
                         is_read * (logits.argmax(1) == batch.labels).to(torch::kFloat64));
    }
    sums[count].index_add_(0, labels, is_read);
    samples.add(batch, probabilities);
  }
  group.sum(sums);
  Json result = {{"classes", header.classes}, {"images", numbers(sums[count])}};
  for (int64_t k = 0; k < count; ++k) {
    result["correct"][networks[static_cast<size_t>(k)].name] =
        numbers(100 * sums[k] / sums[count].clamp_min(1));
  }
  result["samples"] = samples.list();
  return result;
}

}  // namespace adjoin::train
