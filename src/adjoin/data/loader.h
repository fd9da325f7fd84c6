#pragma once

// Batches, ready on the device. Worker threads read ahead by a few batches; small sets lie on the
// device as pixels and are augmented there. What a batch holds depends on (seed, epoch, position)
// alone: not on the number of workers, nor on how many processes share the work.

#include <memory>
#include <string>
#include <vector>

#include "adjoin/data/augment.h"
#include "adjoin/data/dataset.h"
#include "adjoin/spec/preprocessing.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::data {

struct Batch {
  torch::Tensor images;   ///< (b, C, H, W) float32, normalised, on the device
  torch::Tensor labels;   ///< (b) int64; -1 for an image that could not be read (evaluation only)
  torch::Tensor targets;  ///< (b, classes) float32: smoothed and mixed; undefined in evaluation
  std::vector<int64_t> unreadable;  ///< images of this batch met broken for the first time
};

struct LoaderOptions {
  bool is_training = true;
  int64_t batch_size = 1;  ///< of all processes together
  int64_t img_size = 224;
  int64_t channels = 3;
  int64_t classes = 0;  ///< width of the targets; 0: as many as the split has
  Preprocessing preprocessing;
  AugmentOptions augment;
  uint64_t seed = 0;
  int64_t workers = 2;  ///< threads; 0: the caller's own
  int64_t rank = 0;     ///< this process' part of every batch: a contiguous slice of it
  int64_t world = 1;
  torch::Device device = torch::kCPU;
};

class Loader {
 public:
  /// In training a set smaller than the batch makes batches of the whole set. Error(kConfig) when
  /// options contradict each other, Error(kData) when the set is empty or a label out of range.
  Loader(Split split, LoaderOptions options);
  ~Loader();
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;

  const Split& split() const;

  /// Batches of an epoch. Training drops the last, incomplete one; evaluation shares it out.
  int64_t steps() const;

  /// Images of all processes in the batch of a step.
  int64_t batch_size(int64_t step) const;

  /// From here on next() gives the batches of this epoch, beginning with `step`. What was read
  /// ahead is dropped.
  void begin(int64_t epoch, int64_t step = 0);

  /// The next batch of the epoch; this process' part of it. Error of a worker is thrown here.
  Batch next();

  /// Images that could not be read, of all batches handed out so far; ascending.
  std::vector<int64_t> unreadable() const;

  /// Takes these as met before, as they were when a checkpoint was written: they are not listed in
  /// a batch again.
  void set_unreadable(const std::vector<int64_t>& images);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace adjoin::data
