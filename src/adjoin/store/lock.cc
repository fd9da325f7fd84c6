#include "adjoin/store/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "adjoin/core/error.h"

namespace adjoin::store {
namespace {

struct flock write_lock(int64_t byte) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  return range;
}

}  // namespace

LockFile::LockFile(const std::string& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {  // NOLINT(*-vararg)
  if (descriptor_ < 0) {
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  }
}

LockFile::~LockFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool LockFile::try_lock(int64_t byte) {
  struct flock range = write_lock(byte);
  if (fcntl(descriptor_, F_OFD_SETLK, &range) == 0) return true;  // NOLINT(*-vararg)
  if (errno == EAGAIN || errno == EACCES) return false;
  refuse();
}

bool LockFile::is_locked(int64_t byte) const {
  struct flock range = write_lock(byte);
  if (fcntl(descriptor_, F_OFD_GETLK, &range) != 0) refuse();  // NOLINT(*-vararg)
  return range.l_type != F_UNLCK;
}

void LockFile::refuse() const {
  throw Error(ErrorKind::kIo, fmt::format("{}: cannot be locked: {}", path_, std::strerror(errno)));
}

}  // namespace adjoin::store
