#pragma once

// Locks of single bytes of a file: each belongs to the descriptor that took it, and ends with it
// or with the process. Two descriptors of one process are in each other's way too.

#include <cstdint>
#include <string>
#include <utility>

namespace adjoin::store {

class LockFile {
 public:
  /// Opens the file, or makes an empty one. Error(kIo) when that fails.
  explicit LockFile(const std::string& path);
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile();

  /// Whether the byte is now ours. Error(kIo) when the disk has no locks.
  bool try_lock(int64_t byte);

  /// Whether another descriptor has the byte. The same errors.
  bool is_locked(int64_t byte) const;

  /// The descriptor, whose locks are the caller's from now on.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  [[noreturn]] void refuse() const;

  std::string path_;
  int descriptor_;
};

}  // namespace adjoin::store
