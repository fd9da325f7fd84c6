#pragma once

// Sets made by hand: small images of random pixels, some of them broken.

#include <set>
#include <string>

#include "adjoin/core/error.h"
#include "adjoin/core/rng.h"
#include "adjoin/data/dataset.h"

namespace adjoin::data {

inline Image random_image(int64_t image, int64_t side, int64_t channels) {
  Image result{side, side, channels, {}};
  Rng rng(stream_key(99, {static_cast<uint64_t>(image)}));
  for (int64_t i = 0; i < side * side * channels; ++i) {
    result.pixels.push_back(static_cast<uint8_t>(rng.below(256)));
  }
  return result;
}

/// `count` images of 3 channels and 5 classes: image i has label i % 5.
inline Split make_split(int64_t count, int64_t side, std::set<int64_t> broken = {}) {
  Split split;
  split.name = "made";
  split.classes = {"a", "b", "c", "d", "e"};
  for (int64_t i = 0; i < count; ++i) split.labels.push_back(i % 5);
  split.describe = [](int64_t image) { return "image " + std::to_string(image); };
  split.read = [side, broken](int64_t image) -> Stored {
    if (broken.contains(image)) {
      // Both ways an image can be broken: it cannot be read, or it cannot be decoded.
      if (image % 2 == 0) throw Error(ErrorKind::kIo, "cannot read");
      return io::own_bytes("broken.png", std::vector<std::byte>(10));
    }
    return random_image(image, side, 3);
  };
  return split;
}

}  // namespace adjoin::data
