#pragma once

// Which image stands where in an epoch, and which part of every batch is this process'. A function
// of (seed, epoch) alone: all processes compute the same order.

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "adjoin/core/rng.h"

namespace adjoin::data {

/// What a stream of random numbers of the data pipeline is for.
enum class Stream : uint64_t { kOrder, kTransform, kCrop, kErasing, kNoise, kMix };

/// One place of a batch.
struct Sample {
  int64_t image = 0;
  int64_t repeat = 0;  ///< which of its aug_repeats in this epoch

  bool operator==(const Sample&) const = default;
};

Rng stream(uint64_t seed, Stream use, std::initializer_list<uint64_t> parts);

/// The stream of one sample of an epoch.
Rng sample_stream(uint64_t seed, Stream use, int64_t epoch, const Sample& sample);

/// Positions of a batch, from begin to end - 1.
struct Slice {
  int64_t begin = 0;
  int64_t end = 0;
};

/// A rank's part of a batch. Where there are enough, neighbours (2k, 2k + 1) stay together.
Slice rank_slice(int64_t count, int64_t rank, int64_t world);

struct SamplerOptions {
  int64_t images = 0;
  int64_t batch_size = 1;  ///< of all processes together
  bool is_training = true;
  int64_t aug_repeats = 1;
  uint64_t seed = 0;
  int64_t rank = 0;
  int64_t world = 1;
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  /// Training drops the last, incomplete batch; a set smaller than a batch is one batch.
  int64_t steps() const;

  /// Images of all processes in the batch of a step.
  int64_t batch_size(int64_t step) const;

  /// Training: shuffles. With aug_repeats r the first 1/r of the images stand r times in a row
  /// (Hoffer et al. 2020, as DeiT does it).
  void begin(int64_t epoch);

  int64_t epoch() const { return epoch_; }

  /// This rank's part of a batch of the epoch begun last.
  std::vector<Sample> part(int64_t step) const;

 private:
  Sample sample(int64_t step, int64_t position) const;

  SamplerOptions options_;
  int64_t batch_;
  int64_t epoch_ = 0;
  std::vector<int64_t> order_;
};

}  // namespace adjoin::data
