#pragma once

// The batch operations as loops for CPUs: one pass over the pixels where tensor functions need ten.

#include <cstdint>
#include <span>

#include "adjoin/data/augment.h"

namespace adjoin::data {

/// Images of `channels` squares of `side` pixels.
struct Geometry {
  int64_t channels = 0;
  int64_t side = 0;

  int64_t pixels() const { return channels * side * side; }
};

/// A packed plan as it lies in memory.
struct PlanRows {
  const int64_t* values = nullptr;
  int64_t count = 0;
  int64_t columns = 0;

  const int64_t* operator[](int64_t sample) const { return values + sample * columns; }
};

/// `table` (channels, 256) holds the normalised value of every pixel value.
void normalise_loop(const uint8_t* pixels, int64_t count, Geometry geometry, const float* table,
                    float* out);

void crop_loop(const uint8_t* pixels, PlanRows plan, Geometry geometry, int64_t padding,
               const float* table, float* out);

void erase_loop(float* images, PlanRows plan, Geometry geometry, EraseMode mode,
                const float* noise);

}  // namespace adjoin::data
