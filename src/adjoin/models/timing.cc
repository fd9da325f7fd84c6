#include "adjoin/models/timing.h"

#include <algorithm>

#include "adjoin/core/stopwatch.h"
#include "adjoin/models/forward.h"
#include "adjoin/tensor/device.h"
#include "adjoin/tensor/memory_watch.h"

namespace adjoin::models {
namespace {

constexpr int kWarmUp = 2;

/// A network, ready to run.
class Runner {
 public:
  Runner(const Model& model, const TimingOptions& options)
      : spec_(model.header.spec),
        device_(options.device),
        has_autocast_(options.dtype == torch::kBFloat16),
        type_(has_autocast_ ? torch::kFloat32 : options.dtype),
        weights_(model.weights.to(device_, type_)) {}

  /// Milliseconds of one pass.
  double run(int64_t batch) { return run(images_of(batch)); }

  /// The most bytes of a pass, above its weights.
  int64_t memory(int64_t batch) {
    if (!device_.is_cpu()) return 0;
    const auto images = images_of(batch);
    run(images);  // makes what it keeps
    MemoryWatch watch;
    watch.reset();
    run(images);
    return watch.peak();
  }

 private:
  torch::Tensor images_of(int64_t batch) const {
    return torch::zeros({batch, spec_.in_chans, spec_.img_size, spec_.img_size},
                        torch::TensorOptions().device(device_).dtype(type_));
  }

  double run(const torch::Tensor& images) {
    const torch::NoGradGuard no_grad;
    const Autocast autocast(device_, has_autocast_);
    nn::Context context;
    context.constants = &constants_;
    wait();
    const Stopwatch watch;
    forward(spec_, weights_, images, context);
    wait();
    return 1e3 * watch.seconds();
  }

  void wait() const {
    if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
  }

  const ModelSpec& spec_;
  torch::Device device_;
  bool has_autocast_;
  torch::ScalarType type_;
  Weights weights_;
  nn::Constants constants_;
};

/// The value that a share of all is below.
double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

std::vector<std::vector<Timing>> time_networks(
    const std::vector<Model>& networks, const TimingOptions& options,
    const std::function<void(int64_t, int64_t)>& progress) {
  std::vector<Runner> runners;
  runners.reserve(networks.size());
  for (const Model& network : networks) runners.emplace_back(network, options);
  const size_t batches = options.batches.size();
  std::vector<std::vector<double>> times(runners.size() * batches);
  std::vector<int64_t> memory(times.size());
  const int64_t rounds = kWarmUp + options.rounds;
  const int64_t passes = rounds * static_cast<int64_t>(times.size());
  int64_t done = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < times.size(); ++i) {
      Runner& runner = runners[i / batches];
      const int64_t batch = options.batches[i % batches];
      if (round == 0) memory[i] = runner.memory(batch);
      const double ms = runner.run(batch);
      if (round >= kWarmUp) times[i].push_back(ms);
      if (progress) progress(++done, passes);
    }
  }
  std::vector<std::vector<Timing>> results(runners.size());
  for (size_t i = 0; i < times.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    results[i / batches].push_back({options.batches[i % batches], quantile(times[i], 0.5),
                                    quantile(times[i], 0.1), quantile(times[i], 0.9), memory[i]});
  }
  return results;
}

}  // namespace adjoin::models
