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

  /// One step down the gradients: begin_step and update.
  void step(double lr);

  /// Says how long the next step is. `lr` is that of a group with scale 1.
  void begin_step(double lr);

  /// Takes it. On a GPU all that differs between steps lies there, so this can be recorded.
  void update();

  /// What the next step depends on besides values and gradients: moments by name. In a new process,
  /// copy into these.
  std::map<std::string, torch::Tensor> state() const;

  int64_t steps_taken() const { return steps_taken_; }
  void set_steps_taken(int64_t steps) { steps_taken_ = steps; }

 private:
  void adamw(const ParameterGroup& group);
  void sgd(const ParameterGroup& group);

  OptimizerOptions options_;
  const Parameters& parameters_;
  torch::Tensor first_;   // AdamW: mean of gradients; SGD: momentum
  torch::Tensor second_;  // AdamW: mean of squares
  torch::Tensor count_;   // steps taken, this one included
  torch::Tensor rate_;    // lr
  double lr_ = 0;
  int64_t steps_taken_ = 0;
};

}  // namespace adjoin::train
