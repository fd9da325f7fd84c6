#include "adjoin/cli/workshop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/error.h"

namespace adjoin::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = ".adjoin-export-";

}  // namespace

FolderLock::FolderLock(const fs::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
  is_locked_ = descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  is_anothers_ = descriptor_ >= 0 && !is_locked_ && errno == EWOULDBLOCK;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FolderLock::is_our_users() const {
  struct stat status {};
  return ::fstat(descriptor_, &status) == 0 && status.st_uid == ::geteuid();
}

Workshop::Workshop(const std::string& target) : target_(target) {
  for (const char* ending : {"", ".data"}) AtomicFile(target + ending);  // refuses what is no file
  clear_others();
  std::error_code ignored;
  do {
    std::string name = (target_.parent_path() / (std::string(kPrefix) + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: cannot be written: {}", target, std::strerror(errno)));
    }
    folder_ = name;
    lock_.emplace(folder_);
    // Who clears up may have taken it before it was locked.
  } while (lock_->is_anothers() || !fs::exists(folder_, ignored));
}

Workshop::~Workshop() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

int64_t Workshop::deliver() const {
  uintmax_t bytes = 0;
  for (const std::string_view ending : {".data", ""}) {
    const fs::path made = path() + std::string(ending);
    const fs::path place = target_.string() + std::string(ending);
    std::error_code failure;
    const uintmax_t size = fs::file_size(made, failure);
    if (failure && !ending.empty()) {
      ::unlink(place.c_str());  // of an older export
      continue;
    }
    if (!failure) fs::rename(made, place, failure);
    if (failure) {
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: cannot be written: {}", place.string(), failure.message()));
    }
    bytes += size;
  }
  return static_cast<int64_t>(bytes);
}

/// Folders that nobody is at any more. What cannot be removed stays.
void Workshop::clear_others() const {
  const fs::path beside = target_.has_parent_path() ? target_.parent_path() : ".";
  std::error_code failure;
  fs::directory_iterator entry(beside, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    const fs::path& path = entry->path();
    if (!path.filename().string().starts_with(kPrefix)) continue;
    const FolderLock lock(path);
    std::error_code ignored;
    if (lock.is_locked() && lock.is_our_users()) fs::remove_all(path, ignored);
  }
}

}  // namespace adjoin::cli
