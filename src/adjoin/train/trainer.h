#pragma once

// The training step: forward, backward, sum over processes, clip, update, average. Nothing in a
// step of one process waits for the device: what is to be known of it is summed there and read when
// asked for. On a GPU the step is recorded after a few steps, and then replayed.

#include <string>
#include <vector>

#include "adjoin/io/model_file.h"
#include "adjoin/tensor/recording.h"
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
  std::vector<double> accuracy;  ///< percent, of the labels before mixing; per network
  std::vector<double> terms;     ///< of the loss, as Objective::terms names them
  double grad_norm = 0;
  int64_t images = 0;
};

/// The networks that are trained, with their start values: the large one, and those inside it.
struct Networks {
  ModelSpec spec;
  Weights start;
  std::vector<InnerNetwork> inner = {};
};

/// What tells a step from the one before.
struct StepInfo {
  int64_t images = 0;  ///< of the batch, over all processes
  int64_t step = 0;    ///< counts over the run, and names the random numbers that are used
  double lr = 0;
  double time = 0;  ///< what Objective gets
};

class Trainer {
 public:
  /// `config`, `objective` and `group` must outlive it. All processes start with the first one's
  /// values.
  Trainer(const Networks& networks, const TrainConfig& config, const Objective& objective,
          const Compute& compute, Group& group);

  /// One step on this process' part of a batch. On the CPU a loss or gradient that is not finite is
  /// an Error(kNumeric) before anything is updated; on a GPU `read` says so.
  void step(const data::Batch& batch, const StepInfo& info);

  /// Metrics over all processes since the last call. Error(kNumeric) naming the first bad step.
  Metrics read();

  /// Error(kNumeric) if a step so far was bad or left weights that are not finite: ask before
  /// saving.
  void check_finite();

  /// Of a network, the large one first.
  const ModelSpec& spec(size_t network = 0) const { return specs_[network]; }
  const Compute& compute() const { return compute_; }
  const Parameters& parameters() const { return parameters_; }

  /// What the run is judged by: the average where one is kept, else the weights.
  Weights judged_weights(size_t network = 0) const;

  /// What `read` would give, over all processes, as the checkpoint keeps it; 1-d float64, on the
  /// CPU. Every process asks.
  torch::Tensor pending() const;

  /// Gives the pending sums back to one process, which holds them for all.
  void set_pending(const torch::Tensor& sums);

  /// All tensors the next step depends on, by name; to be written, or copied into.
  NamedTensors state() const;
  int64_t steps_taken() const { return optimizer_.steps_taken(); }
  void set_steps_taken(int64_t steps) { optimizer_.set_steps_taken(steps); }

 private:
  void set_seed(int64_t step, int64_t part);
  bool is_recordable(const data::Batch& batch) const;
  void replay(const data::Batch& batch, int64_t images);
  void compute_step(const data::Batch& batch, int64_t images, int64_t step);
  void backward(const data::Batch& batch, int64_t images, int64_t step);
  void take_note(const torch::Tensor& norm, int64_t step);

  std::vector<ModelSpec> specs_;
  const TrainConfig& config_;
  const Objective& objective_;
  const Compute compute_;
  Group& group_;
  Parameters parameters_;
  Optimizer optimizer_;
  GradientBuckets buckets_;
  torch::Tensor average_;    // EMA of the values; undefined without
  torch::Tensor sums_;       // float64: loss, gradient norm, steps, images, correct.., terms..
  torch::Tensor first_bad_;  // 0-d int64: the first step that was not finite, or -1
  torch::Tensor step_loss_;  // 0-d float64: this step's, this process' share
  torch::Tensor step_;       // 0-d int64: the step that is computed
  torch::Tensor time_;       // 0-d float64
  torch::Generator rng_;
  nn::Constants constants_;
  std::vector<Branch> branches_;
  SideStream stream_;
  int64_t steps_alike_ = 0;  // with batches as large as held_
  data::Batch held_;         // what the recorded step reads
  Recording recording_;
};

}  // namespace adjoin::train
