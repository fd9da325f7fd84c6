#include "adjoin/core/place.h"

#include <sys/stat.h>

namespace adjoin {

Place place_at(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return Place::kNothing;
  if (S_ISDIR(status.st_mode)) return Place::kFolder;
  return S_ISREG(status.st_mode) ? Place::kFile : Place::kOther;
}

}  // namespace adjoin
