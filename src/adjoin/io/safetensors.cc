#include "adjoin/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/error.h"
#include "adjoin/core/json.h"
#include "adjoin/core/text.h"
#include "adjoin/io/limits.h"
#include "adjoin/io/safetensors_header.h"

namespace adjoin::io {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read where they lie");

struct Parts {
  std::string_view header;
  std::span<const std::byte> data;
};

Parts split(const FileBytes& file) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorKind::kData, file.origin + ": " + what);
  };
  const size_t size = file.bytes.size();
  if (size < sizeof(uint64_t)) {
    fail(fmt::format("is {} bytes long; a safetensors file has at least 8", size));
  }
  uint64_t length = 0;
  std::memcpy(&length, file.bytes.data(), sizeof length);
  if (length > kMostHeaderBytes) {
    fail(fmt::format("is not a safetensors file: its header would be {} bytes long, at most {} are",
                     length, kMostHeaderBytes));
  }
  if (length > size - sizeof length) {
    fail(fmt::format("is cut short: its header is {} bytes long, but only {} follow", length,
                     size - sizeof length));
  }
  const auto rest = file.bytes.subspan(sizeof length);
  const std::string_view header(reinterpret_cast<const char*>(rest.data()), length);
  if (!header.starts_with('{')) fail("is not a safetensors file: its header does not open with {");
  return {header, rest.subspan(length)};
}

using NamedTensor = std::pair<const std::string, StoredTensor>;

/// The tensors cover the data, each byte once.
void check_cover(const TensorFile& result, std::span<const std::byte> data) {
  const std::string& origin = result.file.origin;
  std::vector<const NamedTensor*> order;
  order.reserve(result.tensors.size());
  for (const NamedTensor& entry : result.tensors) order.push_back(&entry);
  const auto end_of = [](const NamedTensor& entry) {
    const StoredTensor& tensor = entry.second;
    return tensor.data + static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype);
  };
  std::sort(order.begin(), order.end(), [&](const NamedTensor* a, const NamedTensor* b) {
    if (a->second.data != b->second.data) return a->second.data < b->second.data;
    return end_of(*a) < end_of(*b);  // those without a byte come first
  });
  const std::byte* covered = data.data();
  for (const NamedTensor* entry : order) {
    const std::byte* begin = entry->second.data;
    if (begin != covered) {
      throw Error(ErrorKind::kData,
                  fmt::format("{}: tensor {} begins at byte {} of the data, but the tensors before "
                              "it end at {}: they {}",
                              origin, in_quotes(entry->first), begin - data.data(),
                              covered - data.data(), begin < covered ? "overlap" : "leave a hole"));
    }
    covered = end_of(*entry);
  }
  const std::byte* end = data.data() + data.size();
  if (covered != end) {
    throw Error(ErrorKind::kData, fmt::format("{}: {} bytes after the last tensor belong to none",
                                              origin, end - covered));
  }
}

/// `text` as a JSON string.
std::string json_string(const std::string& path, const std::string& text) {
  if (!is_utf8(text)) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: {} is not UTF-8 and cannot be written", path, in_quotes(text)));
  }
  return Json(text).dump();
}

void check_tensors(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  const auto fail = [&](const std::string& name, const std::string& what) {
    throw Error(ErrorKind::kInternal, fmt::format("{}: tensor {} {}", path, in_quotes(name), what));
  };
  if (tensors.size() > kMostTensors) {
    throw Error(ErrorKind::kData, fmt::format("{}: {} tensors are too many; a file holds {}", path,
                                              tensors.size(), kMostTensors));
  }
  std::vector<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    names.push_back(tensor.name);
    if (tensor.name == kMetadataKey) fail(tensor.name, "has a name that means something else");
    if (tensor.shape.size() > kMostDims) fail(tensor.name, "has more than 16 dimensions");
    const bool is_negative = std::any_of(tensor.shape.begin(), tensor.shape.end(),
                                         [](int64_t size) { return size < 0; });
    if (is_negative || !checked_extent(tensor.shape)) fail(tensor.name, "has an impossible shape");
    const bool is_empty =
        std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
    const auto numel = is_empty ? 0 : static_cast<size_t>(*checked_extent(tensor.shape));
    size_t needed = 0;
    if (__builtin_mul_overflow(numel, item_size(tensor.dtype), &needed) ||
        needed != tensor.bytes.size()) {
      fail(tensor.name, fmt::format("has {} bytes; {} numbers of {} are due", tensor.bytes.size(),
                                    numel, dtype_name(tensor.dtype)));
    }
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail(std::string(*twice), "is given twice");
}

std::string header_of(const std::string& path, const std::vector<const TensorToWrite*>& order,
                      const std::map<std::string, std::string, std::less<>>& metadata) {
  std::vector<std::string> entries;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    pairs.reserve(metadata.size());
    for (const auto& [key, value] : metadata) {
      pairs.push_back(json_string(path, key) + ":" + json_string(path, value));
    }
    entries.push_back(fmt::format("\"{}\":{{{}}}", kMetadataKey, fmt::join(pairs, ",")));
  }
  size_t begin = 0;
  for (const TensorToWrite* tensor : order) {
    const size_t end = begin + tensor->bytes.size();
    entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json_string(path, tensor->name), dtype_name(tensor->dtype),
                                  fmt::join(tensor->shape, ","), begin, end));
    begin = end;
  }
  std::string header = fmt::format("{{{}}}", fmt::join(entries, ","));
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8
  return header;
}

}  // namespace

bool looks_like_safetensors(const FileBytes& file) {
  return file.bytes.size() > sizeof(uint64_t) &&
         file.bytes[sizeof(uint64_t)] == static_cast<std::byte>('{');
}

TensorFile read_safetensors(FileBytes file) {
  const Parts parts = split(file);
  TensorFile result;
  result.file = std::move(file);
  read_header(parts.header, parts.data, result);
  check_cover(result, parts.data);
  return result;
}

void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata) {
  check_tensors(path, tensors);
  std::vector<const TensorToWrite*> order;
  order.reserve(tensors.size());
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    return item_size(a->dtype) > item_size(b->dtype);
  });
  const std::string header = header_of(path, order, metadata);
  if (header.size() > kMostHeaderBytes) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: its names and metadata take {} bytes; at most {}", path,
                            header.size(), kMostHeaderBytes));
  }
  const uint64_t length = header.size();
  size_t total = sizeof length + header.size();
  for (const TensorToWrite& tensor : tensors) total += tensor.bytes.size();
  header_budget(header, total, path);
  AtomicFile out(path);
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(header);
  for (const TensorToWrite* tensor : order) out.write(tensor->bytes);
  out.commit();
}

}  // namespace adjoin::io
