#include "adjoin/data/batch_loops.h"

#include <algorithm>

#include "adjoin/data/batch_ops.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::data {
namespace {

/// Work under this many values is not worth waking another thread.
int64_t images_per_thread(Geometry geometry) {
  constexpr int64_t kLeastValues = 1 << 15;
  return std::max<int64_t>(kLeastValues / std::max<int64_t>(geometry.pixels(), 1), 1);
}

/// One row of the padded image, columns `left` to left + side - 1.
void crop_row(const uint8_t* row, int64_t left, int64_t side, const float* table, float* out) {
  const int64_t begin = std::clamp<int64_t>(-left, 0, side);
  const int64_t end = std::clamp<int64_t>(side - left, 0, side);
  std::fill(out, out + begin, table[0]);
  for (int64_t x = begin; x < end; ++x) out[x] = table[row[x + left]];
  std::fill(out + end, out + side, table[0]);
}

void crop_image(const uint8_t* image, const int64_t* plan, Geometry geometry, int64_t padding,
                const float* table, float* out) {
  const int64_t side = geometry.side;
  const int64_t left = plan[kLeft] - padding;
  for (int64_t c = 0; c < geometry.channels; ++c, table += 256) {
    for (int64_t y = 0; y < side; ++y, out += side) {
      const int64_t from = y + plan[kTop] - padding;
      if (from < 0 || from >= side) {
        std::fill(out, out + side, table[0]);
        continue;
      }
      crop_row(image + (c * side + from) * side, left, side, table, out);
      if (plan[kIsFlipped] != 0) std::reverse(out, out + side);
    }
  }
}

void erase_rectangle(float* image, const int64_t* rectangle, Geometry geometry, EraseMode mode,
                     const float* noise, const float* channel_values) {
  const int64_t top = rectangle[0];
  const int64_t left = rectangle[1];
  for (int64_t c = 0; c < geometry.channels; ++c) {
    for (int64_t y = top; y < top + rectangle[2]; ++y) {
      const int64_t offset = (c * geometry.side + y) * geometry.side + left;
      switch (mode) {
        case EraseMode::kPixel: std::copy_n(noise + offset, rectangle[3], image + offset); break;
        case EraseMode::kRand: std::fill_n(image + offset, rectangle[3], channel_values[c]); break;
        case EraseMode::kConst: std::fill_n(image + offset, rectangle[3], 0.0F); break;
      }
    }
  }
}

}  // namespace

void normalise_loop(const uint8_t* pixels, int64_t count, Geometry geometry, const float* table,
                    float* out) {
  const int64_t plane = geometry.side * geometry.side;
  at::parallel_for(0, count, images_per_thread(geometry), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin * geometry.channels; p < end * geometry.channels; ++p) {
      const float* values = table + p % geometry.channels * 256;
      for (int64_t i = p * plane; i < (p + 1) * plane; ++i) out[i] = values[pixels[i]];
    }
  });
}

void crop_loop(const uint8_t* pixels, PlanRows plan, Geometry geometry, int64_t padding,
               const float* table, float* out) {
  const int64_t size = geometry.pixels();
  at::parallel_for(0, plan.count, images_per_thread(geometry), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      crop_image(pixels + plan[i][kRow] * size, plan[i], geometry, padding, table, out + i * size);
    }
  });
}

void erase_loop(float* images, PlanRows plan, Geometry geometry, EraseMode mode,
                const float* noise) {
  const int64_t rectangles = (plan.columns - kRectangles) / 4;
  at::parallel_for(0, plan.count, images_per_thread(geometry), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* own = noise + plan[i][kNoise];
      for (int64_t r = 0; r < rectangles; ++r) {
        erase_rectangle(images + i * geometry.pixels(), plan[i] + kRectangles + 4 * r, geometry,
                        mode, own, own + r * geometry.channels);
      }
    }
  });
}

}  // namespace adjoin::data
