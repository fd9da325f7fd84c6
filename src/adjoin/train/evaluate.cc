#include "adjoin/train/evaluate.h"

#include <chrono>
#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/models/forward.h"
#include "adjoin/tensor/device.h"

namespace adjoin::train {
namespace {

enum Sum { kTop1, kTop5, kLoss, kImages, kUnreadable, kSums };

/// Adds a batch; images without a label could not be read and do not count.
void add(torch::Tensor& sums, const torch::Tensor& logits, const torch::Tensor& labels) {
  const auto is_read = labels >= 0;  // (b)
  const auto best = std::get<1>(logits.topk(std::min<int64_t>(5, logits.size(1)), 1));
  const auto hits = (best == labels.unsqueeze(1)).to(torch::kFloat64);  // (b, 5)
  const auto loss = torch::nn::functional::cross_entropy(
      logits.to(torch::kFloat64), labels,
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-1).reduction(torch::kSum));
  sums.add_(
      torch::stack({hits.select(1, 0).sum(), hits.sum(), loss, is_read.sum().to(torch::kFloat64),
                    is_read.logical_not().sum().to(torch::kFloat64)}));
}

}  // namespace

Evaluation evaluate(const ModelSpec& spec, const Weights& weights, data::Loader& loader,
                    const Compute& compute, Group& group,
                    const std::function<void(int64_t)>& progress) {
  const torch::NoGradGuard no_grad;
  const auto start = std::chrono::steady_clock::now();
  auto sums = torch::zeros(kSums, torch::TensorOptions(compute.device).dtype(torch::kFloat64));
  std::vector<int64_t> unreadable;
  nn::Constants constants;
  nn::Context context;
  context.constants = &constants;
  loader.begin(0);
  for (int64_t i = 0; i < loader.steps(); ++i) {
    const data::Batch batch = loader.next();
    unreadable.insert(unreadable.end(), batch.unreadable.begin(), batch.unreadable.end());
    if (batch.images.size(0) > 0) {
      const Autocast autocast(compute.device, compute.has_autocast());
      const auto images = batch.images.to(compute.weight_type());
      add(sums, models::forward(spec, weights, images, context).logits(), batch.labels);
    }
    if (progress) progress(i + 1);
  }
  group.sum(sums);
  const auto read = sums.cpu();
  const auto* s = read.data_ptr<double>();
  Evaluation result;
  result.newly_unreadable = std::move(unreadable);
  const double images = std::max(s[kImages], 1.0);
  result.top1 = 100 * s[kTop1] / images;
  result.top5 = 100 * s[kTop5] / images;
  result.loss = s[kLoss] / images;
  if (!std::isfinite(result.loss)) {
    throw Error(ErrorKind::kNumeric,
                spec.name + ": its loss on " + loader.split().name + " is NaN or infinite");
  }
  result.images = static_cast<int64_t>(s[kImages]);
  result.unreadable = static_cast<int64_t>(s[kUnreadable]);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace adjoin::train
