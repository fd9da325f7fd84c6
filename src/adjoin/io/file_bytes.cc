#include "adjoin/io/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "adjoin/core/error.h"

namespace adjoin::io {
namespace {

[[noreturn]] void throw_io(const std::string& path, int code) {
  throw Error(ErrorKind::kIo, fmt::format("{}: cannot be read: {}", path, std::strerror(code)));
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int value() const { return value_; }

 private:
  int value_;
};

void check_regular(const std::string& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) {
    if (status.st_size == 0) throw Error(ErrorKind::kData, path + ": is empty");
    return;
  }
  const char* kind = S_ISDIR(status.st_mode)    ? "a folder"
                     : S_ISFIFO(status.st_mode) ? "a pipe"
                     : S_ISSOCK(status.st_mode) ? "a socket"
                                                : "a device";
  throw Error(ErrorKind::kData, fmt::format("{}: is {}, not a regular file", path, kind));
}

}  // namespace

FileBytes map_file(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.value() < 0) throw_io(path, errno);
  struct stat status {};
  if (fstat(file.value(), &status) != 0) throw_io(path, errno);
  check_regular(path, status);
  const auto size = static_cast<size_t>(status.st_size);
  // MAP_NORESERVE: hardly any page will be written to, so none need be set aside.
  void* address =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.value(), 0);
  if (address == MAP_FAILED) throw_io(path, errno);
  std::shared_ptr<const void> owner(
      address, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
  return {path, std::move(owner), {static_cast<const std::byte*>(address), size}};
}

FileBytes own_bytes(std::string origin, std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view = *owner;
  return {std::move(origin), std::move(owner), view};
}

}  // namespace adjoin::io
