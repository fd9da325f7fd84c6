#pragma once

// A folder beside a file to come: what is made and checked there replaces an older file only when
// it is good. It is gone when the object is; what killed processes left beside it is cleared.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace adjoin::cli {

/// The lock of a folder, which ends with the process. Not where the file system has none.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool is_locked() const { return is_locked_; }
  bool is_anothers() const { return is_anothers_; }
  /// Whether the folder belongs to the user of this process.
  bool is_our_users() const;

 private:
  int descriptor_;
  bool is_locked_ = false;
  bool is_anothers_ = false;
};

class Workshop {
 public:
  /// `target`: the file to come. Error(kIo) where none can be.
  explicit Workshop(const std::string& target);
  ~Workshop();
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  /// The file under its own name.
  std::string path() const { return folder_ / target_.filename(); }

  /// Moves it to its place, after its ".data" where there is one; returns their bytes.
  int64_t deliver() const;

 private:
  void clear_others() const;

  std::filesystem::path target_;
  std::filesystem::path folder_;
  std::optional<FolderLock> lock_;
};

}  // namespace adjoin::cli
