#include "adjoin/io/state_dict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"
#include "adjoin/io/limits.h"

namespace adjoin::io {
namespace {

using Kind = PickleKind;

// Averaged weights are the ones to use.
constexpr std::string_view kWrappers[] = {"state_dict_ema", "model_ema", "model", "state_dict"};
constexpr int kMostWrappers = 2;
constexpr size_t kLongestName = 4096;
// What torch.nn.DataParallel and torch.compile put before every name.
constexpr std::string_view kPrefixes[] = {"module.", "_orig_mod."};

/// The value of a key, the last one if there are several, as in Python.
std::optional<PickleValue> find(const PickleValue& dict, std::string_view key) {
  const auto& values = dict.items->values;
  for (size_t i = values.size(); i >= 2; i -= 2) {
    if (values[i - 2].is_string(key)) return values[i - 1];
  }
  return std::nullopt;
}

bool holds_tensor(const PickleValue& dict) {
  const auto& values = dict.items->values;
  for (size_t i = 0; i < values.size(); i += 2) {
    if (values[i + 1].kind == Kind::kTensor) return true;
  }
  return false;
}

/// A state_dict inside a checkpoint: "model.state_dict_ema" and what is there.
struct Wrapped {
  std::string path;
  PickleValue dict;
};

/// The state_dicts that `dict` wraps, the one to use first.
std::vector<Wrapped> wrapped(const PickleValue& dict, int wrappers_left) {
  std::vector<Wrapped> result;
  for (const std::string_view key : kWrappers) {
    const auto inner = find(dict, key);
    if (!inner || inner->kind != Kind::kDict) continue;
    if (holds_tensor(*inner)) {
      result.push_back({std::string(key), *inner});
    } else if (wrappers_left > 1) {
      for (const Wrapped& deeper : wrapped(*inner, wrappers_left - 1)) {
        result.push_back({fmt::format("{}.{}", key, deeper.path), deeper.dict});
      }
    }
  }
  return result;
}

std::string describe_keys(const PickleValue& dict) {
  constexpr size_t kMostShown = 8;
  const auto& values = dict.items->values;
  if (values.empty()) return "it is an empty dictionary";
  std::vector<std::string> keys;
  for (size_t i = 0; i < values.size() && keys.size() < kMostShown; i += 2) {
    const PickleValue& key = values[i];
    keys.push_back(key.kind == Kind::kString ? one_line(std::string(key.string().substr(0, 60)))
                   : key.kind == Kind::kInt  ? std::to_string(key.integer)
                                             : "(an object)");
  }
  const bool is_cut = values.size() / 2 > kMostShown;
  return fmt::format("its keys are {}{}", fmt::join(keys, ", "), is_cut ? ", .." : "");
}

PickleValue choose(const PickleValue& checkpoint, const std::string& origin,
                   std::vector<std::string>& notes) {
  if (checkpoint.kind != Kind::kDict) {
    const bool is_object = checkpoint.kind == Kind::kOpaque;
    throw Error(ErrorKind::kData,
                fmt::format("{}: holds {} instead of a state_dict; save model.state_dict()", origin,
                            is_object                          ? "an object of a class"
                            : checkpoint.kind == Kind::kTensor ? "one tensor"
                            : checkpoint.kind == Kind::kList   ? "a list"
                            : checkpoint.kind == Kind::kTuple  ? "a tuple"
                                                               : "a plain value"));
  }
  const auto found = wrapped(checkpoint, kMostWrappers);
  if (found.size() > 1) {
    notes.push_back(fmt::format("{}: of its state_dicts the one under \"{}\" is used", origin,
                                found.front().path));
  }
  if (!found.empty()) return found.front().dict;
  if (holds_tensor(checkpoint)) return checkpoint;
  throw Error(ErrorKind::kData,
              fmt::format("{}: holds no state_dict: {}", origin, describe_keys(checkpoint)));
}

/// Turns one pickled tensor into a stored one.
class TensorReader {
 public:
  TensorReader(std::string_view name, const std::string& origin) : name_(name), origin_(origin) {}

  StoredTensor read(const PickleValue& tensor, StorageSource& storages,
                    MemoryBudget& budget) const {
    const auto& parts = tensor.items->values;
    const PickledStorage storage = storage_of(parts[0]);
    StoredTensor result;
    result.dtype = storage.dtype;
    result.shape = sizes(parts[2], "size", budget);
    result.strides = sizes(parts[3], "stride", budget);
    const int64_t offset = count(parts[1], "offset");
    const auto bytes = storages.bytes_of(storage.key);
    int64_t storage_bytes = 0;
    if (__builtin_mul_overflow(storage.numel, static_cast<int64_t>(item_size(result.dtype)),
                               &storage_bytes) ||
        static_cast<uint64_t>(storage_bytes) != bytes.size()) {
      fail(fmt::format("has {} numbers of {} in storage {}, which has {} bytes", storage.numel,
                       dtype_name(result.dtype), in_quotes(storage.key), bytes.size()));
    }
    check_view(result, offset, storage.numel);
    result.data = bytes.data() + static_cast<size_t>(offset) * item_size(result.dtype);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kData, fmt::format("{}: tensor {} {}", origin_, in_quotes(name_), what));
  }

  int64_t count(const PickleValue& value, const char* what) const {
    if (value.kind != Kind::kInt) fail(fmt::format("has something else than integers as {}", what));
    if (value.integer < 0) fail(fmt::format("has {} as {}; at least 0", value.integer, what));
    return value.integer;
  }

  std::vector<int64_t> sizes(const PickleValue& value, const char* what,
                             MemoryBudget& budget) const {
    if (value.kind != Kind::kTuple) fail(fmt::format("has no tuple as {}", what));
    const auto& values = value.items->values;
    if (values.size() > kMostDims) fail(fmt::format("has more than {} dimensions", kMostDims));
    budget.charge_block(values.size() * sizeof(int64_t));
    std::vector<int64_t> result;
    result.reserve(values.size());
    for (const PickleValue& item : values) result.push_back(count(item, what));
    return result;
  }

  /// Everything the view reaches is inside its storage, and it is no larger than that.
  void check_view(const StoredTensor& tensor, int64_t offset, int64_t storage_numel) const {
    if (tensor.shape.size() != tensor.strides.size()) {
      fail(fmt::format("has {} sizes and {} strides", tensor.shape.size(), tensor.strides.size()));
    }
    const auto extent = checked_extent(tensor.shape);
    if (!extent) fail(fmt::format("has the shape [{}], too large", fmt::join(tensor.shape, ", ")));
    const bool is_empty =
        std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
    int64_t last = offset;  // of the numbers the view reaches
    bool is_repeated = !is_empty && *extent > storage_numel;
    bool is_outside = offset > storage_numel;
    for (size_t i = 0; i < tensor.shape.size() && !is_empty; ++i) {
      int64_t reach = 0;
      is_outside |= __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach);
      is_outside |= __builtin_add_overflow(last, reach, &last);
      is_repeated |= tensor.shape[i] > 1 && tensor.strides[i] == 0;
    }
    if (is_outside || (!is_empty && last >= storage_numel)) {
      fail(fmt::format(
          "reaches outside its storage: shape [{}], strides [{}] from {} in {} numbers",
          fmt::join(tensor.shape, ", "), fmt::join(tensor.strides, ", "), offset, storage_numel));
    }
    if (is_repeated) fail("repeats the same numbers (an expanded view); save it .contiguous()");
  }

  std::string_view name_;
  const std::string& origin_;
};

using Entries = std::map<std::string_view, PickleValue>;

/// By name, the last of each.
Entries entries_of(const PickleValue& dict, const std::string& origin, MemoryBudget& budget) {
  Entries entries;
  const auto& values = dict.items->values;
  for (size_t i = 0; i < values.size(); i += 2) {
    const bool is_long =
        values[i].kind == Kind::kString && values[i].string().size() > kLongestName;
    if (is_long) {  // before anything looks at it: a name costs two bytes however long it is
      throw Error(ErrorKind::kData,
                  fmt::format("{}: entry {} of its state_dict has a name of {} bytes; at most {}",
                              origin, i / 2, values[i].string().size(), kLongestName));
    }
    if (values[i].kind != Kind::kString || !is_utf8(values[i].string())) {
      throw Error(ErrorKind::kData,
                  fmt::format("{}: entry {} of its state_dict has a name that is no {}", origin,
                              i / 2, values[i].kind == Kind::kString ? "UTF-8" : "string"));
    }
    budget.charge_block(sizeof(Entries::value_type) + 4 * sizeof(void*));
    entries[values[i].string()] = values[i + 1];
  }
  return entries;
}

/// Length of the wrappers' names that all entries open with.
size_t shared_prefix(const Entries& entries) {
  size_t length = 0;
  for (bool is_longer = !entries.empty(); is_longer;) {
    is_longer = false;
    for (const std::string_view prefix : kPrefixes) {
      const bool is_shared = std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
        return entry.first.size() >= length && entry.first.substr(length).starts_with(prefix);
      });
      if (!is_shared) continue;
      length += prefix.size();
      is_longer = true;
    }
  }
  return length;
}

}  // namespace

void take_state_dict(const PickleValue& checkpoint, StorageSource& storages, MemoryBudget& budget,
                     TensorFile& result) {
  const std::string& origin = result.file.origin;
  const Entries entries = entries_of(choose(checkpoint, origin, result.notes), origin, budget);
  const size_t prefix = shared_prefix(entries);
  for (const auto& [full_name, value] : entries) {
    const std::string_view name = full_name.substr(prefix);
    budget.charge_block(name.size());
    if (value.kind == Kind::kTensor) {
      budget.charge_block(sizeof(std::pair<std::string, StoredTensor>) + 4 * sizeof(void*));
      StoredTensor tensor = TensorReader(name, origin).read(value, storages, budget);
      result.tensors.emplace(std::string(name), std::move(tensor));
    } else {
      budget.charge(3 * sizeof(std::string));  // a vector doubles
      result.not_tensors.emplace_back(name);
    }
  }
}

}  // namespace adjoin::io
