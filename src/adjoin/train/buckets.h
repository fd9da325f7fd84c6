#pragma once

// Sums gradients over the ranks while backward still runs: gradients lie in one flat buffer that is
// cut into buckets, and a bucket is sent when the last gradient in it is ready, always in the same
// order. Sums, not means. (Li et al. 2020, "PyTorch Distributed", section 3.2.)
//
//   train::GradientBuckets buckets(group, leaves, flat);
//   flat.zero_();
//   buckets.begin();
//   loss.backward();
//   buckets.finish();              // flat holds the sum over the ranks

#include <cstdint>
#include <memory>
#include <vector>

#include "adjoin/train/group.h"

namespace adjoin::train {

class GradientBuckets {
 public:
  /// `leaves` in the order the forward pass uses them. Each has a `grad` that is a view of `flat`
  /// (1-d, contiguous); views may be strided and overlap, such as those of a small network inside a
  /// large one. All of `flat` is summed, also what no leaf covers. `bytes`: how large a bucket may
  /// grow; a view larger than that has one of its own. A leaf that gets no gradient holds up its
  /// bucket and those after it until finish(): leave out one that never does. `group` must live as
  /// long.
  GradientBuckets(Group& group, const std::vector<torch::Tensor>& leaves, const torch::Tensor& flat,
                  int64_t bytes = int64_t{25} << 20);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// Before the one backward whose gradients are to be summed; without it hooks do nothing (the
  /// earlier parts of an accumulated step).
  void begin();

  /// After that backward: sends the buckets of leaves that got no gradient, waits for all. Throws
  /// as Group::sum does.
  void finish();

  size_t count() const;  ///< of buckets; 0 for a process alone

  /// How many were sent since begin(). May be asked on any thread.
  size_t sent() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace adjoin::train
