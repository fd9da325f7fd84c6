#include "adjoin/cli/torch_part.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <filesystem>
#include <vector>

#include "adjoin/cli/command.h"
#include "adjoin/core/error.h"

namespace adjoin::cli {
namespace {

/// lib/adjoin beside the bin folder the program is in; the build tree and an installation alike.
std::filesystem::path torch_part_path() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  return program.parent_path().parent_path() / "lib" / "adjoin" / kTorchPart;
}

/// LibTorch and OpenBLAS do not survive having too little address space: one aborts, the other asks
/// again without end.
void check_address_space() {
  constexpr size_t kLeast = size_t{1280} << 20;
  void* const probe =
      mmap(nullptr, kLeast, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) {  // NOLINT(*-cast-to-pointer, *-cstyle-cast)
    throw Error(ErrorKind::kMemory,
                fmt::format("out of memory: LibTorch needs {} MiB of address space to begin with, "
                            "and ulimit -v leaves less",
                            kLeast >> 20));
  }
  munmap(probe, kLeast);
}

}  // namespace

int run_torch_command(std::string_view name, Args args) {
  check_address_space();
  const auto path = torch_part_path();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(ErrorKind::kMissingPart,
                fmt::format("{} needs the LibTorch part of this program: {}", name, dlerror()));
  }
  const auto entry = reinterpret_cast<TorchEntry>(dlsym(library, kTorchEntry));
  if (entry == nullptr)
    throw Error(ErrorKind::kMissingPart, path.string() + " is of another version");
  std::vector<const char*> pointers;
  for (const std::string& arg : args) pointers.push_back(arg.c_str());
  std::vector<char> message(1 << 16);  // may list every tensor of a network
  int kind = static_cast<int>(ErrorKind::kInternal);
  const int status =
      entry(std::string(name).c_str(), static_cast<int>(pointers.size()), pointers.data(),
            message.data(), static_cast<int>(message.size()), &kind);
  if (status == kFailed) throw Error(static_cast<ErrorKind>(kind), message.data());
  return status;
}

}  // namespace adjoin::cli
