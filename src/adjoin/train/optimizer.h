#pragma once

// AdamW (Loshchilov and Hutter 2019) and SGD with Nesterov momentum, the arithmetic of PyTorch's,
// over the one buffer that Parameters lays out.

#include <map>
#include <string>

#include "adjoin/train/config.h"
#include "adjoin/train/parameters.h"

namespace adjoin::train {

class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, const Parameters& parameters);

  /// One step down the gradients. `lr` is that of a group with scale 1.
  void step(double lr);

  /// What the next step depends on besides values and gradients: moments by name. In a new process,
  /// copy into these.
  std::map<std::string, torch::Tensor> state() const;

  int64_t steps_taken() const { return steps_taken_; }
  void set_steps_taken(int64_t steps) { steps_taken_ = steps; }

 private:
  void adamw(const ParameterGroup& group, double lr);
  void sgd(const ParameterGroup& group, double lr);

  OptimizerOptions options_;
  const Parameters& parameters_;
  torch::Tensor first_;   // AdamW: mean of gradients; SGD: momentum
  torch::Tensor second_;  // AdamW: mean of squares
  torch::Tensor count_;   // steps taken, on a GPU
  int64_t steps_taken_ = 0;
};

}  // namespace adjoin::train
