#pragma once

// What is done to whole batches of images where they lie, CPU or GPU: crops of the padded image and
// flips, normalisation, random erasing (Zhong et al. 2020), mixup (Zhang et al. 2018), cutmix (Yun
// et al. 2019) and label smoothing, with timm's rules. Everything random is drawn on the CPU, as a
// function of the sample or the batch, and goes to the device as one small table of integers.

#include <cstdint>
#include <vector>

#include "adjoin/core/rng.h"
#include "adjoin/data/augment.h"
#include "adjoin/spec/preprocessing.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::data {

struct Rectangle {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;

  int64_t area() const { return height * width; }
};

/// Where an image is cut out of itself with a black border around, and whether it is flipped then.
struct Crop {
  int64_t top = 0;  ///< 0 to 2 * padding
  int64_t left = 0;
  bool is_flipped = false;
};

Crop draw_crop(int64_t padding, double hflip, Rng rng);

/// Rectangles of an image to erase, none or up to recount.
struct Erasing {
  std::vector<Rectangle> rectangles;
  int64_t noise = 0;  ///< where in the noise of the BatchOps the values begin
};

Erasing draw_erasing(const AugmentOptions& options, int64_t img_size, Rng rng);

/// How each sample of a batch is mixed with its neighbour.
struct Mix {
  double lambda = 1;  ///< the part of its own; with cutmix the true area outside the box
  bool is_cutmix = false;
  Rectangle box;  ///< comes from the neighbour, cutmix only
};

Mix draw_mix(const AugmentOptions& options, int64_t img_size, Rng rng);

/// All that is drawn for one sample, and where its pixels are.
struct SamplePlan {
  int64_t row = 0;  ///< in the tensor of pixels
  int64_t label = 0;
  Crop crop;
  Erasing erasing;
};

/// The columns of a packed plan; then come 4 for every rectangle: top, left, height, width.
enum PlanColumn : int64_t { kRow, kLabel, kTop, kLeft, kIsFlipped, kNoise, kRectangles };

/// (b, kRectangles + 4 * rectangles) int64, on the device without waiting for it.
torch::Tensor pack_plan(const std::vector<SamplePlan>& plan, int64_t rectangles,
                        torch::Device device);

class BatchOps {
 public:
  struct Options {
    Preprocessing preprocessing;
    int64_t channels = 3;
    int64_t img_size = 224;
    int64_t padding = 0;  ///< of crop()
    EraseMode erase_mode = EraseMode::kPixel;
    bool has_erasing = false;
    uint64_t seed = 0;
    torch::Device device = torch::kCPU;
  };

  explicit BatchOps(const Options& options);

  /// (b, C, H, W) uint8 -> float32
  torch::Tensor normalise(const torch::Tensor& pixels) const;

  /// Rows of (n, C, H, W) uint8, cropped and flipped by the plan: (b, C, H, W) float32, normalised.
  torch::Tensor crop(const torch::Tensor& pixels, const torch::Tensor& plan) const;

  /// Overwrites the plan's rectangles of normalised images.
  void erase(torch::Tensor& images, const torch::Tensor& plan) const;

  /// crop and erase by tensor functions only: what runs on a GPU, and the twin of the CPU loops.
  torch::Tensor crop_by_tensors(const torch::Tensor& pixels, const torch::Tensor& plan) const;
  void erase_by_tensors(torch::Tensor& images, const torch::Tensor& plan) const;

 private:
  Options options_;
  torch::Tensor mean_;        // (C, 1, 1), of values from 0 to 255
  torch::Tensor std_;         // (C, 1, 1)
  std::vector<float> table_;  // (C, 256): normalised values, for CPUs
  torch::Tensor noise_;       // normal values; an image takes a stretch of C * H * W of them
};

/// (b, classes) float32: smoothing / classes everywhere, and 1 - smoothing more at the label.
torch::Tensor smoothed_targets(const torch::Tensor& labels, int64_t classes, double smoothing);

/// Mixes neighbours (2k, 2k + 1) in place; the last of an odd batch stays as it is.
void mix_neighbours(const Mix& mix, torch::Tensor& images, torch::Tensor& targets);

}  // namespace adjoin::data
