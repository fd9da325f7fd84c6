#include "adjoin/core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "adjoin/core/error.h"
#include "adjoin/core/hash.h"

namespace adjoin {
namespace {

[[noreturn]] void throw_io(const std::string& path, int code) {
  throw Error(ErrorKind::kIo, fmt::format("{}: cannot be written: {}", path, std::strerror(code)));
}

/// Folder of a path, with its slash; empty when the path has none.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

/// A rename would put a plain file where the folder, device or pipe was.
void check_place(const std::string& path) {
  if (path.empty()) throw Error(ErrorKind::kIo, "the name of the file to write is empty");
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) throw Error(ErrorKind::kIo, path + ": is a folder, not a file");
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kIo, path + ": is a device or a pipe; give the name of a regular file");
  }
}

/// Makes the rename itself durable. A folder that may be written but not listed cannot be opened,
/// and some network file systems cannot sync one: the file stands in its place all the same.
void sync_folder(const std::string& folder) {
  const int descriptor = open(folder.empty() ? "." : folder.c_str(),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // NOLINT(*-vararg)
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  check_place(path_);
  // A file without a name is gone when the process is, however it ends. Not every file system can.
  const std::string folder = folder_of(path_);
  descriptor_ = open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) return;
  // Not mkostemp: it makes files of mode 0600, and nobody can ask for the umask without setting it
  // for every thread. open applies it.
  take_temporary_name([&](const std::string& name) {
    descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor_ >= 0;
  });
}

template <class Make>
void AtomicFile::take_temporary_name(Make make) {
  constexpr int kTries = 100;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const uint64_t start = splitmix64(static_cast<uint64_t>(now)) ^ static_cast<uint64_t>(getpid());
  for (int i = 0; i < kTries; ++i) {
    // The name leaves out that of the file, which may be as long as names can be.
    std::string name = fmt::format("{}.adjoin-{:016x}", folder_of(path_),
                                   splitmix64(start + static_cast<uint64_t>(i)));
    if (make(name)) {
      temporary_ = std::move(name);
      return;
    }
    if (errno != EEXIST && errno != EINTR) throw_io(path_, errno);
  }
  throw_io(path_, EEXIST);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (descriptor_ < 0) throw Error(ErrorKind::kInternal, path_ + ": written to after commit");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io(path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  if (descriptor_ < 0) throw Error(ErrorKind::kInternal, path_ + ": committed twice");
  int status = 0;
  do {
    status = fsync(descriptor_);
  } while (status != 0 && errno == EINTR);
  if (status != 0) throw_io(path_, errno);
  if (temporary_.empty()) {
    const std::string unnamed = fmt::format("/proc/self/fd/{}", descriptor_);
    take_temporary_name([&](const std::string& name) {
      return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
  }
  // close reports what a network file system found out late; its descriptor is gone either way.
  if (close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) throw_io(path_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw_io(path_, errno);
  temporary_.clear();
  sync_folder(folder_of(path_));
}

}  // namespace adjoin
