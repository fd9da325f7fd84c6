#pragma once

// Splits and files of them, as tests look at them.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "adjoin/data/dataset.h"
#include "support/temp_folder.h"

namespace adjoin::data {

inline std::vector<uint8_t> pixels_of(const Split& split, int64_t image) {
  return std::get<Image>(split.read(image)).pixels;
}

/// The bytes of an image that is still encoded.
inline std::string bytes_of(const Split& split, int64_t image) {
  const auto stored = split.read(image);
  const auto bytes = std::get<io::FileBytes>(stored).bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::vector<std::string> all_bytes(const Split& split) {
  std::vector<std::string> result;
  for (int64_t i = 0; i < split.size(); ++i) result.push_back(bytes_of(split, i));
  return result;
}

inline DataSets open_all(const std::string& data) { return open_data({.data = data}); }

/// The one split of a set in one piece.
inline Split open_single(const std::string& data) {
  return open_data({.data = data, .is_train_needed = false}).val;
}

/// Folders and small files by their paths, "train/cat/1.jpg".
inline void write_tree(const TempFolder& folder, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      mkdir((folder / path.substr(0, at)).c_str(), 0777);
    }
    if (!path.ends_with('/')) folder.write(path, "bytes of " + path);
  }
}

}  // namespace adjoin::data
