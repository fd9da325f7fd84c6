#include "adjoin/core/place.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "adjoin/core/error.h"

namespace adjoin {

Place place_at(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return Place::kNothing;
  if (S_ISDIR(status.st_mode)) return Place::kFolder;
  return S_ISREG(status.st_mode) ? Place::kFile : Place::kOther;
}

std::optional<int64_t> written_at(const std::string& path) {
  constexpr int64_t kNanosecondsInASecond = 1'000'000'000;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mtim.tv_sec * kNanosecondsInASecond + status.st_mtim.tv_nsec;
}

void make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    const int failure = mkdir(part.c_str(), 0777) == 0 ? 0 : errno;
    if (failure != 0 && failure != EEXIST && place_at(part) != Place::kFolder) {
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: cannot be made: {}", part, std::strerror(failure)));
    }
    if (slash == std::string::npos) break;
  }
  if (place_at(path) == Place::kFolder) return;
  throw Error(ErrorKind::kIo, path + ": is a file, where a folder is needed");
}

}  // namespace adjoin
