#include "adjoin/train/dry_run.h"

#include <sys/resource.h>

#include <algorithm>

#include "adjoin/core/stopwatch.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/forward.h"
#include "adjoin/tensor/device.h"
#include "adjoin/train/memory_advice.h"
#include "adjoin/train/run.h"

namespace adjoin::train {
namespace {

constexpr int64_t kSteps = 5;
constexpr int64_t kStepsUntilReplayed = 5;  // on a GPU the first ones are not typical

template <class Act>
double timed(torch::Device device, Act act) {
  const Stopwatch watch;
  act();
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
  return watch.seconds();
}

double median_step(data::Loader& loader, Trainer& trainer, const Job& job) {
  std::vector<double> times;
  loader.begin(0);
  const int64_t first = Recording::is_possible(job.compute.device) ? kStepsUntilReplayed : 0;
  for (int64_t i = 0; i < std::min<int64_t>(first + kSteps, loader.steps()); ++i) {
    if (i == first) times.clear();
    times.push_back(timed(job.compute.device, [&] {
      trainer.step(loader.next(), {loader.batch_size(i), i});
    }));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Of one batch: the first warms up.
double evaluation_step(data::Loader& loader, const Trainer& trainer, const Job& job) {
  const torch::NoGradGuard no_grad;
  double seconds = 0;
  loader.begin(0);
  for (int64_t i = 0; i < std::min<int64_t>(2, loader.steps()); ++i) {
    seconds = timed(job.compute.device, [&] {
      const Autocast autocast(job.compute.device, job.compute.has_autocast());
      const auto images = loader.next().images.to(job.compute.weight_type());
      if (images.size(0) == 0) return;
      for (size_t k = 0; k <= job.inner.size(); ++k) {
        models::forward(trainer.spec(k), trainer.judged_weights(k), images);
      }
    });
  }
  return seconds;
}

Estimate measured(Job& job, Group& group) {
  data::Loader train(std::move(*job.data.train), job.loader_options(true, group));
  data::Loader val(std::move(job.data.val), job.loader_options(false, group));
  Trainer trainer(job.networks(), job.config, *job.objective, job.compute, group);
  Estimate result;
  result.images = train.split().size();
  result.steps_per_epoch = train.steps();
  result.step_seconds = median_step(train, trainer, job);
  result.evaluation_seconds = evaluation_step(val, trainer, job) * static_cast<double>(val.steps());
  result.seconds =
      static_cast<double>(job.config.epochs) *
      (result.step_seconds * static_cast<double>(train.steps()) + result.evaluation_seconds);
  for (const auto& [name, tensor] : trainer.state()) {
    result.state_bytes += static_cast<int64_t>(tensor.nbytes());
  }
  result.state_bytes += static_cast<int64_t>(trainer.parameters().gradients().nbytes());
  const int64_t part = (train.batch_size(0) / group.size() + job.config.grad_accum_steps - 1) /
                       job.config.grad_accum_steps;
  for (size_t k = 0; k <= job.inner.size(); ++k) {
    result.activation_bytes += cost(trainer.spec(k)).activation_bytes * part;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
  return result;
}

}  // namespace

Estimate estimate(Job& job, Group& group) {
  Estimate result;
  with_memory_advice(job.config, [&] { result = measured(job, group); });
  return result;
}

Json to_json(const Estimate& e) {
  return {{"images", e.images},
          {"steps_per_epoch", e.steps_per_epoch},
          {"step_seconds", e.step_seconds},
          {"evaluation_seconds", e.evaluation_seconds},
          {"seconds", e.seconds},
          {"state_bytes", e.state_bytes},
          {"activation_bytes", e.activation_bytes},
          {"peak_bytes", e.peak_bytes}};
}

}  // namespace adjoin::train
