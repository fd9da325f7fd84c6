#pragma once

// How long networks take, side by side.

#include <functional>
#include <vector>

#include "adjoin/models/load.h"

namespace adjoin::models {

struct TimingOptions {
  torch::Device device = torch::kCPU;
  torch::ScalarType dtype = torch::kFloat32;  ///< kBFloat16: autocast
  std::vector<int64_t> batches = {1};
  int64_t rounds = 15;
};

/// Of one forward pass.
struct Timing {
  int64_t batch = 0;
  double ms = 0;             ///< the median
  double low_ms = 0;         ///< a tenth of the passes were faster
  double high_ms = 0;        ///< a tenth were slower
  int64_t memory_bytes = 0;  ///< most that values on their way took; 0: not measured (on a GPU)

  double images_per_second() const { return 1e3 * static_cast<double>(batch) / ms; }
};

/// Times every network with every batch, in turns, so that a machine that gets slower meets all
/// alike. `progress(passes, of)` is called between passes. One result per network and batch.
std::vector<std::vector<Timing>> time_networks(
    const std::vector<Model>& networks, const TimingOptions& options,
    const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace adjoin::models
