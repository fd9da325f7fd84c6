#pragma once

// The training step: forward, backward, sum over processes, clip, update, average. Nothing in a
// step of one process waits for the device: what is to be known of it is summed there and read when
// asked for.

#include <string>
#include <vector>

#include "adjoin/io/model_file.h"
#include "adjoin/train/buckets.h"
#include "adjoin/train/config.h"
#include "adjoin/train/group.h"
#include "adjoin/train/objective.h"
#include "adjoin/train/optimizer.h"

namespace adjoin::train {

/// How a network is computed.
struct Compute {
  torch::Device device = torch::kCPU;
  torch::ScalarType dtype = torch::kFloat32;  ///< kBFloat16 means autocast over float32 weights

  torch::ScalarType weight_type() const {
    return dtype == torch::kBFloat16 ? torch::kFloat32 : dtype;
  }
  bool has_autocast() const { return dtype == torch::kBFloat16; }
};

/// Means over the images since the last reading.
struct Metrics {
  double loss = 0;
  double accuracy = 0;  ///< percent, of the labels before mixing
  double grad_norm = 0;
  int64_t images = 0;
};

class Trainer {
 public:
  /// `config`, `objective` and `group` must outlive it. All processes start with the first one's
  /// values.
  Trainer(const ModelSpec& spec, const Weights& start, const TrainConfig& config,
          const Objective& objective, const Compute& compute, Group& group);

  /// One step on this process' part of a batch of `images` images. `step` counts over the run and
  /// names the random numbers that are used. On the CPU a loss or gradient that is not finite is an
  /// Error(kNumeric) before anything is updated; on a GPU `read` says so.
  void step(const data::Batch& batch, int64_t images, int64_t step, double lr);

  /// Metrics over all processes since the last call. Error(kNumeric) naming the first bad step.
  Metrics read();

  /// Error(kNumeric) if a step so far was bad or left weights that are not finite: ask before
  /// saving.
  void check_finite();

  const ModelSpec& spec() const { return spec_; }
  const Compute& compute() const { return compute_; }
  const Parameters& parameters() const { return parameters_; }

  /// What the run is judged by: the average where one is kept, else the weights.
  Weights judged_weights() const;

  /// What `read` would give, over all processes, as the checkpoint keeps it; (5) float64, on the
  /// CPU. Every process asks.
  torch::Tensor pending() const;

  /// Gives the pending sums back to one process, which holds them for all.
  void set_pending(const torch::Tensor& sums);

  /// All tensors the next step depends on, by name; to be written, or copied into.
  std::vector<std::pair<std::string, torch::Tensor>> state() const;
  int64_t steps_taken() const { return optimizer_.steps_taken(); }
  void set_steps_taken(int64_t steps) { optimizer_.set_steps_taken(steps); }

 private:
  void backward(const data::Batch& batch, int64_t images, int64_t step);
  void take_note(const torch::Tensor& norm, int64_t step);

  const ModelSpec spec_;
  const TrainConfig& config_;
  const Objective& objective_;
  const Compute compute_;
  Group& group_;
  Parameters parameters_;
  Optimizer optimizer_;
  GradientBuckets buckets_;
  torch::Tensor average_;    // EMA of the values; undefined without
  torch::Tensor sums_;       // (5) float64: loss, correct, gradient norm, steps, images
  torch::Tensor first_bad_;  // 0-d int64: the first step that was not finite, or -1
  torch::Tensor step_loss_;  // 0-d float64: this step's, this process' share
  torch::Generator rng_;
  nn::Constants constants_;
};

}  // namespace adjoin::train
