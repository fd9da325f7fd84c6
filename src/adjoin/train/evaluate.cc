#include "adjoin/train/evaluate.h"

#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/core/stopwatch.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/forward.h"
#include "adjoin/tensor/device.h"

namespace adjoin::train {
namespace {

enum Sum { kTop1, kTop5, kLoss, kImages, kUnreadable, kSums };

/// Adds a batch to a row of sums; images without a label could not be read and do not count.
void add(torch::Tensor sums, const torch::Tensor& logits, const torch::Tensor& labels) {
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

Evaluation evaluation_of(const double* sums) {
  Evaluation result;
  const double images = std::max(sums[kImages], 1.0);
  result.top1 = 100 * sums[kTop1] / images;
  result.top5 = 100 * sums[kTop5] / images;
  result.loss = sums[kLoss] / images;
  result.images = static_cast<int64_t>(sums[kImages]);
  result.unreadable = static_cast<int64_t>(sums[kUnreadable]);
  return result;
}

}  // namespace

Json network_json(const ModelSpec& spec, const Evaluation& evaluation, const std::string& file) {
  const Cost counted = cost(spec);
  return {{"top1", evaluation.top1},  {"top5", evaluation.top5},      {"loss", evaluation.loss},
          {"params", counted.params}, {"macs", counted.macs.total()}, {"file", file}};
}

void check_classes(const io::ModelHeader& header, const data::Split& split,
                   const std::string& name) {
  const auto count = static_cast<int64_t>(split.classes.size());
  if (count > header.spec.num_classes) {
    throw Error(ErrorKind::kData, fmt::format("{}: tells {} classes apart, but {} has {}", name,
                                              header.spec.num_classes, split.name, count));
  }
  if (header.classes.empty() || header.classes == split.classes) return;
  for (size_t i = 0; i < split.classes.size(); ++i) {
    const std::string theirs = i < header.classes.size() ? header.classes[i] : "";
    if (theirs == split.classes[i]) continue;
    throw Error(ErrorKind::kData, fmt::format("{}: its class {} is \"{}\", that of {} \"{}\"", name,
                                              i, theirs, split.name, split.classes[i]));
  }
}

std::vector<Evaluation> evaluate(const std::vector<EvaluatedNetwork>& networks,
                                 data::Loader& loader, const Compute& compute, Group& group,
                                 const std::function<void(int64_t)>& progress, Answers* answers) {
  const torch::NoGradGuard no_grad;
  const Stopwatch watch;
  const auto count = static_cast<int64_t>(networks.size());
  auto sums =
      torch::zeros({count, kSums}, torch::TensorOptions(compute.device).dtype(torch::kFloat64));
  nn::Constants constants;
  nn::Context context;
  context.constants = &constants;
  loader.begin(0);
  for (int64_t i = 0; i < loader.steps(); ++i) {
    const data::Batch batch = loader.next();
    if (batch.images.size(0) > 0) {
      const Autocast autocast(compute.device, compute.has_autocast());
      const auto images = batch.images.to(compute.weight_type());
      std::vector<torch::Tensor> logits;
      for (const EvaluatedNetwork& network : networks) {
        logits.push_back(models::forward(network.spec, network.weights, images, context).logits());
        add(sums[static_cast<int64_t>(logits.size()) - 1], logits.back(), batch.labels);
      }
      if (answers != nullptr) answers->add(batch, logits);
    }
    if (progress) progress(i + 1);
  }
  group.sum(sums);
  if (answers != nullptr) answers->finish(group);
  const auto read = sums.cpu();
  const double seconds = watch.seconds();
  std::vector<Evaluation> results;
  for (int64_t k = 0; k < count; ++k) {
    Evaluation result = evaluation_of(read.data_ptr<double>() + k * kSums);
    result.seconds = seconds;
    if (!std::isfinite(result.loss)) {
      throw Error(ErrorKind::kNumeric, networks[static_cast<size_t>(k)].name + ": its loss on " +
                                           loader.split().name + " is NaN or infinite");
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace adjoin::train
