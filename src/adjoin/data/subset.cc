#include "adjoin/data/subset.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include "adjoin/core/error.h"
#include "adjoin/core/rng.h"

namespace adjoin::data {
namespace {

// Which question a hash answers: the same images need not come first in both.
constexpr uint64_t kImagesOfLimit = 1;
constexpr uint64_t kClassesOfLimit = 2;
constexpr uint64_t kImagesSetAside = 3;

struct Ranked {
  int64_t image;
  int64_t label;
  uint64_t hash;
  int64_t rank = 0;  ///< among the images of its class
};

/// By class, and in it by hash.
std::vector<Ranked> rank_images(const Split& split, uint64_t question) {
  std::vector<Ranked> images;
  images.reserve(split.labels.size());
  for (int64_t i = 0; i < split.size(); ++i) {
    images.push_back({i, split.labels[static_cast<size_t>(i)],
                      stream_key(question, {static_cast<uint64_t>(i)})});
  }
  std::sort(images.begin(), images.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.label, a.hash, a.image) < std::tie(b.label, b.hash, b.image);
  });
  for (size_t i = 1; i < images.size(); ++i) {
    if (images[i].label == images[i - 1].label) images[i].rank = images[i - 1].rank + 1;
  }
  return images;
}

/// In the order they had.
Split with_images(const Split& split, std::vector<int64_t> images) {
  std::sort(images.begin(), images.end());
  Split result;
  result.name = split.name;
  result.classes = split.classes;
  result.labels.reserve(images.size());
  for (const int64_t image : images) {
    result.labels.push_back(split.labels[static_cast<size_t>(image)]);
  }
  const auto shared = std::make_shared<const std::vector<int64_t>>(std::move(images));
  result.read = [shared, read = split.read](int64_t image) {
    return read((*shared)[static_cast<size_t>(image)]);
  };
  result.describe = [shared, describe = split.describe](int64_t image) {
    return describe((*shared)[static_cast<size_t>(image)]);
  };
  return result;
}

/// How many of a class of `size` images are set aside.
int64_t share_of(int64_t size, double fraction) {
  const auto share = static_cast<int64_t>(std::llround(fraction * static_cast<double>(size)));
  return size < 2 ? 0 : std::clamp<int64_t>(share, 1, size - 1);
}

}  // namespace

Split limited(Split split, int64_t count) {
  if (count == 0 || count >= split.size()) return split;
  std::vector<Ranked> images = rank_images(split, kImagesOfLimit);
  for (Ranked& image : images) {
    image.hash = stream_key(kClassesOfLimit, {static_cast<uint64_t>(image.label)});
  }
  const auto end = images.begin() + count;
  std::nth_element(images.begin(), end, images.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.rank, a.hash, a.label) < std::tie(b.rank, b.hash, b.label);
  });
  std::vector<int64_t> chosen;
  for (auto image = images.begin(); image != end; ++image) chosen.push_back(image->image);
  return with_images(split, std::move(chosen));
}

std::pair<Split, Split> divided(const Split& split, double fraction) {
  std::vector<int64_t> sizes(split.classes.size());
  for (const int64_t label : split.labels) ++sizes[static_cast<size_t>(label)];
  std::vector<int64_t> kept;
  std::vector<int64_t> set_aside;
  for (const Ranked& image : rank_images(split, kImagesSetAside)) {
    const int64_t share = share_of(sizes[static_cast<size_t>(image.label)], fraction);
    (image.rank < share ? set_aside : kept).push_back(image.image);
  }
  if (set_aside.empty()) {
    throw Error(ErrorKind::kData, split.name +
                                      ": no image can be set aside for validation: no class has "
                                      "more than one");
  }
  return {with_images(split, std::move(kept)), with_images(split, std::move(set_aside))};
}

}  // namespace adjoin::data
