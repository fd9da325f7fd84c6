#pragma once

// Images in tar files, read where they lie: opening a set reads the headers alone. The class of an
// image is the folder it lies in, the last of its path.

#include <string>
#include <vector>

#include "adjoin/data/source.h"

namespace adjoin::data {

/// Where the images of some tars are, and what they show.
struct TarIndex {
  struct Place {
    uint64_t at;  ///< where its first header begins
    uint32_t shard;
  };

  std::vector<io::FileBytes> shards;
  std::vector<Place> images;
  std::vector<int64_t> labels;
  std::vector<std::string> classes;  ///< sorted
};

/// Error(kData) when a tar is broken, holds an image without a class, or a folder without images.
TarIndex index_tars(std::vector<io::FileBytes> shards);

/// A .tar, which is a set in one piece, or a folder with train.tar and val.tar, or with shards of
/// them, train-*.tar and val-*.tar (or validation or test for val).
Source tar_source(const std::string& name, const std::string& path);

}  // namespace adjoin::data
