#pragma once

// Files that write_images.py wrote with PIL, and the pixels PIL reads from them.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "support/python_folder.h"

namespace adjoin::data {

using Bytes = std::vector<uint8_t>;

inline std::span<const std::byte> as_span(const Bytes& bytes) {
  return std::as_bytes(std::span(bytes));
}

/// The folder the script filled, once per process.
class PilFolder {
 public:
  static const PilFolder& get() {
    static const PilFolder folder;
    return folder;
  }

  /// Why there are no files; empty if there are.
  const std::string& missing() const { return folder_.missing(); }

  Bytes read(const std::string& name) const {
    const std::string bytes = read_file(folder_ / name);
    return {bytes.begin(), bytes.end()};
  }

  /// The rows of images.txt or resizes.txt.
  std::vector<std::string> lines(const std::string& name) const {
    std::istringstream text(read_file(folder_ / name));
    std::vector<std::string> result;
    for (std::string line; std::getline(text, line);) result.push_back(line);
    return result;
  }

 private:
  PythonFolder folder_{"data/write_images.py", "PIL"};
};

/// Skips where PIL is absent.
class PilTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!files().missing().empty()) GTEST_SKIP() << files().missing();
  }

  static const PilFolder& files() { return PilFolder::get(); }
};

/// Where two images first differ, for a message; empty if nowhere.
inline std::string difference(const Bytes& got, const Bytes& want) {
  if (got.size() != want.size()) {
    return std::to_string(got.size()) + " bytes, not " + std::to_string(want.size());
  }
  const auto at = std::mismatch(got.begin(), got.end(), want.begin());
  if (at.first == got.end()) return "";
  return "byte " + std::to_string(at.first - got.begin()) + " is " + std::to_string(*at.first) +
         ", not " + std::to_string(*at.second);
}

}  // namespace adjoin::data
