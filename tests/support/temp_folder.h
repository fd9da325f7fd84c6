#pragma once

// Not std::filesystem: see core/place.h.

#include <ftw.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

namespace adjoin {

/// A folder of its own that is gone when the object is.
class TempFolder {
 public:
  TempFolder() {
    const char* place = std::getenv("TMPDIR");
    path_ = std::string(place == nullptr ? "/tmp" : place) + "/adjoin_test_XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make a folder");
  }
  ~TempFolder() {
    const auto remove_one = [](const char* path, const struct stat*, int, FTW*) {
      return std::remove(path);
    };
    nftw(path_.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  /// The path of a file in it.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  /// Writes a small file and gives its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace adjoin
