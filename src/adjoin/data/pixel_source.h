#pragma once

// Where the pixels of batches come from: read ahead by threads, or all in memory. Of use inside
// data only.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adjoin/data/loader.h"
#include "adjoin/data/sampler.h"

namespace adjoin::data {

/// A rank's part of a batch as 8-bit pixels.
struct PixelBatch {
  std::vector<Sample> samples;
  torch::Tensor pixels;         ///< (n, C, H, W) uint8, on the device or pinned
  std::vector<int64_t> rows;    ///< where in `pixels` each sample is
  std::vector<int64_t> images;  ///< the image that stands there in the end; -1: none could be read
  std::vector<int64_t> broken;  ///< images that could not be read, in the order they were met
};

class PixelSource {
 public:
  virtual ~PixelSource() = default;

  /// From here on next() gives the batches from `step` on of the epoch the sampler has begun.
  virtual void begin(int64_t step) = 0;

  virtual PixelBatch next() = 0;
};

/// One image of a set into a place of a batch. Any thread may call it.
class ImageReader {
 public:
  /// is_whole: without the variation of training, which is left to be done in batches.
  ImageReader(const Split& split, const LoaderOptions& options, bool is_whole);

  /// Writes (C, H, W) to `out`; empty, or why the image cannot be read.
  std::string read(int64_t image, Rng rng, uint8_t* out) const;

  int64_t bytes() const { return channels_ * img_size_ * img_size_; }

 private:
  Image transformed(int64_t image, Rng rng) const;

  const Split& split_;
  Preprocessing preprocessing_;
  int64_t img_size_;
  int64_t channels_;
  std::vector<TrainTransform> transform_;  // none or one
};

/// Puts an image that can be read in the place of `wanted`: itself, or in training the next one
/// that can; -1 in evaluation. `why_not(image)` is empty for such an image. Error(kData) when a
/// hundred in a row are broken.
int64_t first_readable(const Split& split, bool is_training, int64_t wanted,
                       const std::function<std::string(int64_t)>& why_not,
                       std::vector<int64_t>& broken);

/// Sampler, split and options outlive the source.
std::unique_ptr<PixelSource> make_streaming_source(const Split& split, const LoaderOptions& options,
                                                   const Sampler& sampler);
std::unique_ptr<PixelSource> make_resident_source(const Split& split, const LoaderOptions& options,
                                                  const Sampler& sampler);

}  // namespace adjoin::data
