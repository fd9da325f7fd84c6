#pragma once

// Files that are there whole or not at all: written under a temporary name beside their place,
// synced to the disk, then renamed.
//
//   AtomicFile file("out/model.safetensors");
//   file.write(bytes);
//   file.commit();   // without it nothing appears

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace adjoin {

class AtomicFile {
 public:
  /// Error(kIo) when the folder does not exist or cannot be written to, or `path` is a folder, a
  /// device or a pipe. A symbolic link at `path` is replaced, not followed.
  explicit AtomicFile(std::string path);

  /// Removes the temporary file unless `commit` was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  /// Puts the file in its place. Error(kIo) when the disk is full or the rename fails.
  void commit();

 private:
  /// Draws names until `make` succeeds with one, which then is temporary_.
  template <class Make>
  void take_temporary_name(Make make);

  std::string path_;
  std::string temporary_;  ///< empty while the file has no name at all
  int descriptor_ = -1;
};

}  // namespace adjoin
