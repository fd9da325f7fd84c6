#include "adjoin/cli/checked_export.h"

#include <fmt/format.h>

#include "adjoin/cli/run_command.h"
#include "adjoin/cli/workshop.h"
#include "adjoin/core/error.h"
#include "adjoin/data/transform.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/onnx_run.h"

namespace adjoin::cli {
namespace {

constexpr int64_t kImages = 16;      // computed on both sides
constexpr double kTolerance = 1e-4;  // of logits, in units of the largest
constexpr uint64_t kSeed = 0;

struct Comparison {
  double difference = 0;  ///< largest of a logit
  double largest = 0;     ///< logit
  int64_t agree = 0;      ///< images with the same answer

  bool is_good() const {
    return difference <= kTolerance * std::max(largest, 1.0) && agree == kImages;
  }
};

torch::Tensor random_pixels(const ModelSpec& spec) {
  torch::manual_seed(kSeed);
  return torch::randint(0, 256, {kImages, spec.img_size, spec.img_size, spec.in_chans})
      .to(torch::kUInt8);
}

Comparison compare(const std::string& path, const models::Model& model, bool has_preprocessing) {
  const torch::NoGradGuard no_grad;
  const ModelSpec& spec = model.header.spec;
  const auto pixels = random_pixels(spec);
  const auto images = data::normalised(pixels.permute({0, 3, 1, 2}).to(torch::kFloat32).div(255),
                                       model.header.preprocessing);
  Comparison result;
  constexpr int64_t kPart = 4;
  for (int64_t i = 0; i < kImages; i += kPart) {
    const auto part = images.narrow(0, i, kPart);
    const auto wanted = models::forward(spec, model.weights, part).logits();
    const auto got = models::run_onnx(path, has_preprocessing ? pixels.narrow(0, i, kPart) : part);
    const auto largest = [](const torch::Tensor& t) { return t.abs().max().item<double>(); };
    // A NaN must stay: std::max would lose it.
    const double difference = largest(got - wanted);
    if (!(difference <= result.difference)) result.difference = difference;
    result.largest = std::max(result.largest, largest(wanted));
    result.agree += (got.argmax(1) == wanted.argmax(1)).sum().item<int64_t>();
  }
  return result;
}

}  // namespace

CheckedExport checked_export(models::Model model, const std::string& path,
                             const io::OnnxOptions& options, const StopSignal& stop) {
  model.weights = model.weights.to(torch::kCPU, torch::kFloat32);
  const auto values = [&](const std::string& name) {
    const auto tensor = model.weights.at(name).contiguous();
    const float* data = tensor.data_ptr<float>();
    return std::vector<float>(data, data + tensor.numel());
  };
  const Workshop workshop(path);
  io::export_onnx(workshop.path(), model.header, values, options);
  if (stop.received() != 0) throw Stopped{stop.received()};
  const Comparison found = compare(workshop.path(), model, options.has_preprocessing);
  if (!found.is_good()) {
    throw Error(ErrorKind::kNumeric,
                fmt::format("{}: computed from the file, logits differ by {:.1e} and {} of {} "
                            "answers agree; nothing was written",
                            path, found.difference, found.agree, kImages));
  }
  if (stop.received() != 0) throw Stopped{stop.received()};
  return {workshop.deliver(), kImages, found.agree, found.difference};
}

}  // namespace adjoin::cli
