#include "adjoin/io/pth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"
#include "adjoin/io/limits.h"
#include "adjoin/io/pickle.h"
#include "adjoin/io/state_dict.h"
#include "adjoin/io/zip.h"

namespace adjoin::io {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kZipStart = "PK\x03\x04";
constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr int64_t kLegacyProtocol = 1001;
constexpr size_t kReserve = size_t{256} << 10;  // what is not charged: messages, first blocks
constexpr size_t kSlack = size_t{1} << 20;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The magic number is a pickle of its own: PROTO, perhaps FRAME, LONG1, STOP.
bool is_legacy(std::string_view text) {
  constexpr size_t kLongestOpening = 32;
  return text.starts_with('\x80') &&
         text.substr(0, kLongestOpening).find(kLegacyMagic) != std::string_view::npos;
}

[[noreturn]] void fail(const TensorFile& result, const std::string& what) {
  throw Error(ErrorKind::kData, result.file.origin + ": " + what);
}

// ---- zip

/// "archive" of "archive/data.pkl": the folder everything in the zip is in.
std::string_view find_prefix(const ZipArchive& archive, const TensorFile& result) {
  std::string_view prefix;
  for (const ZipEntry& entry : archive.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash == std::string_view::npos || entry.name.substr(slash) != "/data.pkl") continue;
    if (!prefix.empty()) fail(result, "is a zip with two data.pkl; torch.save writes one");
    prefix = entry.name.substr(0, slash);
  }
  if (prefix.empty()) fail(result, "is a zip without data.pkl, not a file of torch.save");
  for (const ZipEntry& entry : archive.entries()) {
    const std::string_view name = entry.name;
    if (!name.starts_with(prefix) || name.substr(prefix.size(), 1) != "/") {
      fail(result, fmt::format("has the zip entry {} outside the folder {}", in_quotes(name),
                               in_quotes(prefix)));
    }
    const std::string_view path = name.substr(prefix.size() + 1);
    if (path == "constants.pkl" || path.starts_with("code/")) {
      fail(result, "is a TorchScript archive; save the state_dict instead");
    }
  }
  return prefix;
}

class ZipStorages : public StorageSource {
 public:
  ZipStorages(ZipArchive& archive, std::string_view prefix, const TensorFile& result)
      : archive_(archive), prefix_(prefix), result_(result) {}

  std::span<const std::byte> bytes_of(std::string_view key) override {
    ZipEntry* entry = archive_.find(fmt::format("{}/data/{}", prefix_, key));
    if (entry == nullptr) fail(result_, fmt::format("lacks the storage {}", in_quotes(key)));
    return archive_.read(*entry);
  }

 private:
  ZipArchive& archive_;
  std::string_view prefix_;
  const TensorFile& result_;
};

void read_zip(TensorFile& result, MemoryBudget& budget) {
  ZipArchive archive(result.file, budget);
  const std::string_view prefix = find_prefix(archive, result);
  archive.require_stored();
  ZipEntry* order = archive.find(fmt::format("{}/byteorder", prefix));
  if (order != nullptr && as_text(archive.read(*order)) != "little") {
    fail(result, fmt::format("has the byte order {}; only little is read",
                             in_quotes(as_text(order->data))));
  }
  ZipEntry& pickle = *archive.find(fmt::format("{}/data.pkl", prefix));
  PickleMachine machine(as_text(archive.read(pickle)), result.file.origin, budget);
  const PickleValue checkpoint = machine.run();
  ZipStorages storages(archive, prefix, result);
  take_state_dict(checkpoint, storages, budget, result);
}

// ---- legacy

/// Reads what stands before the object: magic number, protocol, how the writer's machine counted.
void read_legacy_opening(PickleMachine& machine, const TensorFile& result) {
  const PickleValue magic = machine.run();
  if (magic.kind != PickleKind::kLong || magic.string() != kLegacyMagic) {
    fail(result, "does not open with the magic number of torch.save");
  }
  const PickleValue protocol = machine.run();
  if (protocol.kind != PickleKind::kInt || protocol.integer != kLegacyProtocol) {
    fail(result, fmt::format("has another legacy protocol than {}", kLegacyProtocol));
  }
  const PickleValue system = machine.run();
  bool is_little = false;
  if (system.kind == PickleKind::kDict) {
    const auto& values = system.items->values;
    for (size_t i = 0; i < values.size(); i += 2) {
      if (!values[i].is_string("little_endian")) continue;
      is_little = values[i + 1].kind == PickleKind::kBool && values[i + 1].integer == 1;
    }
  }
  if (!is_little) fail(result, "was not written on a little-endian machine; only little is read");
}

class LegacyStorages : public StorageSource {
 public:
  LegacyStorages(const PickleMachine& machine, const TensorFile& result, MemoryBudget& budget)
      : result_(result) {
    for (const PickleValue& value : machine.storages()) {
      const PickledStorage named = storage_of(value);
      const auto [at, is_new] = storages_.try_emplace(named.key, Storage{named.dtype, named.numel});
      if (is_new) budget.charge_block(sizeof(*at) + 4 * sizeof(void*));
      if (at->second.dtype != named.dtype || at->second.numel != named.numel) {
        fail(result_, fmt::format("gives storage {} two types or sizes", in_quotes(named.key)));
      }
    }
  }

  /// The storages lie one behind the other in the order of the list, each behind its count.
  void locate(const PickleValue& keys, size_t position) {
    if (keys.kind != PickleKind::kList) fail(result_, "has no list of its storages");
    std::span<const std::byte> rest = result_.file.bytes.subspan(position);
    for (const PickleValue& key : keys.items->values) {
      const auto found =
          key.kind == PickleKind::kString ? storages_.find(key.string()) : storages_.end();
      if (found == storages_.end()) {
        fail(result_, "lists a storage of a type that this program does not read");
      }
      rest = take(found->first, found->second, rest);
    }
    if (!rest.empty()) {
      fail(result_, fmt::format("has {} bytes after its last storage", rest.size()));
    }
  }

  std::span<const std::byte> bytes_of(std::string_view key) override {
    const auto found = storages_.find(key);
    if (found == storages_.end() || !found->second.is_located) {
      fail(result_, fmt::format("lacks the storage {}", in_quotes(key)));
    }
    return found->second.bytes;
  }

 private:
  struct Storage {
    Dtype dtype;
    int64_t numel;
    bool is_located = false;
    std::span<const std::byte> bytes = {};
  };

  std::span<const std::byte> take(std::string_view key, Storage& storage,
                                  std::span<const std::byte> rest) const {
    if (storage.is_located) fail(result_, fmt::format("lists storage {} twice", in_quotes(key)));
    int64_t numel = 0;
    if (rest.size() < sizeof numel) {
      fail(result_, fmt::format("is cut short before storage {}", in_quotes(key)));
    }
    std::memcpy(&numel, rest.data(), sizeof numel);
    rest = rest.subspan(sizeof numel);
    if (numel != storage.numel) {
      fail(result_, fmt::format("has {} numbers in storage {}; {} are due", numel, in_quotes(key),
                                storage.numel));
    }
    if (static_cast<uint64_t>(numel) > rest.size() / item_size(storage.dtype)) {
      fail(result_,
           fmt::format("is cut short in storage {}: {} bytes are left for {} numbers of {}",
                       in_quotes(key), rest.size(), numel, dtype_name(storage.dtype)));
    }
    storage.bytes = rest.first(static_cast<size_t>(numel) * item_size(storage.dtype));
    storage.is_located = true;
    return rest.subspan(storage.bytes.size());
  }

  const TensorFile& result_;
  std::map<std::string_view, Storage> storages_;
};

void read_legacy(TensorFile& result, MemoryBudget& budget) {
  PickleMachine machine(as_text(result.file.bytes), result.file.origin, budget);
  read_legacy_opening(machine, result);
  const PickleValue checkpoint = machine.run();
  const PickleValue keys = machine.run();
  LegacyStorages storages(machine, result, budget);
  storages.locate(keys, machine.position());
  take_state_dict(checkpoint, storages, budget, result);
}

/// Pre-0.1.10 files of torch.save were tar archives.
bool is_tar(std::string_view text) {
  constexpr size_t kMagicAt = 257;
  return text.size() > kMagicAt && text.substr(kMagicAt).starts_with("ustar");
}

}  // namespace

bool looks_like_pth(const FileBytes& file) {
  const std::string_view text = as_text(file.bytes);
  return text.starts_with(kZipStart) || is_legacy(text) || is_tar(text);
}

TensorFile read_pth(FileBytes file) {
  TensorFile result;
  result.file = std::move(file);
  const std::string_view text = as_text(result.file.bytes);
  MemoryBudget budget(result.file.origin + ": its pickle", 2 * text.size() + kSlack - kReserve);
  if (text.starts_with(kZipStart)) {
    read_zip(result, budget);
  } else if (is_legacy(text)) {
    read_legacy(result, budget);
  } else if (is_tar(text)) {
    fail(result,
         "is a tar file, as PyTorch before 0.1.10 wrote them; load it in an old PyTorch and "
         "save its state_dict again");
  } else {
    fail(result, "is no file of torch.save: it opens neither like a zip nor like its old format");
  }
  return result;
}

}  // namespace adjoin::io
