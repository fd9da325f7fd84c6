#pragma once

// Training steps of a trainer on one batch that is a function of its shape alone: what the benches
// of steps time, and the losses that both sides must agree on before.

#include <chrono>
#include <memory>

#include "adjoin/models/golden.h"
#include "adjoin/train/trainer.h"

namespace adjoin::bench {

inline constexpr double kLr = 1e-4;

inline data::Batch golden_batch(const ModelSpec& spec, int64_t images,
                                const train::Compute& compute) {
  data::Batch batch;
  batch.images =
      models::golden_uniform("input", {images, spec.in_chans, spec.img_size, spec.img_size})
          .to(compute.device, compute.weight_type());
  batch.labels = torch::arange(images).remainder(spec.num_classes).to(compute.device);
  batch.targets = torch::one_hot(batch.labels, spec.num_classes).to(compute.weight_type());
  return batch;
}

class TrainingSteps {
 public:
  TrainingSteps(const train::Networks& networks, const train::TrainConfig& config,
                const train::Objective& objective, const train::Compute& compute, int64_t images)
      : trainer_(networks, config, objective, compute, group_),
        batch_(golden_batch(networks.spec, images, compute)) {}

  Json first_losses() {
    constexpr int kCheckedSteps = 3;
    Json losses = Json::array();
    for (int i = 0; i < kCheckedSteps; ++i) {
      step();
      losses.push_back(trainer_.read().loss);
    }
    return losses;
  }

  /// {"ms": of one step}
  Json timed(int64_t repeats) {
    synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < repeats; ++i) step();
    synchronize();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return {{"ms", elapsed.count() / static_cast<double>(repeats)}};
  }

 private:
  void step() { trainer_.step(batch_, {batch_.images.size(0), trainer_.steps_taken(), kLr}); }

  void synchronize() const {
    if (batch_.images.is_cuda()) torch::cuda::synchronize();
  }

  train::Group group_;
  train::Trainer trainer_;
  data::Batch batch_;
};

}  // namespace adjoin::bench
