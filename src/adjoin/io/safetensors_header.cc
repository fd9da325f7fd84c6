#include "adjoin/io/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "adjoin/core/error.h"
#include "adjoin/core/json.h"
#include "adjoin/core/text.h"
#include "adjoin/io/limits.h"

namespace adjoin::io {
namespace {

constexpr Dtype kReadable[] = {Dtype::kBool, Dtype::kU8,  Dtype::kI8,   Dtype::kI16, Dtype::kI32,
                               Dtype::kI64,  Dtype::kF16, Dtype::kBF16, Dtype::kF32, Dtype::kF64};

/// Bytes from one quote, bracket, colon or comma to the next, for the longest such run. Outside
/// strings each counts as eight: the parser's message writes a line break as <U+000A>.
size_t longest_token(std::string_view header) {
  constexpr std::string_view kStructure = "{}[]:,";
  constexpr size_t kBlank = 8;
  size_t longest = 0;
  size_t begin = 0;
  bool is_string = false;
  for (size_t i = 0; i < header.size(); ++i) {
    const char c = header[i];
    if (is_string && c == '\\') {
      ++i;
    } else if (c == '"' || (!is_string && kStructure.find(c) != std::string_view::npos)) {
      longest = std::max(longest, (i - begin) * (is_string ? 1 : kBlank));
      if (c == '"') is_string = !is_string;
      begin = i + 1;
    }
  }
  return std::max(longest, (header.size() - begin) * (is_string ? 1 : kBlank));
}

/// Takes the parser's events. Objects in objects in the header: nothing nests deeper than a list in
/// a tensor, so the place is one of six.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(std::span<const std::byte> data, TensorFile& result, MemoryBudget& budget)
      : data_(data), result_(result), budget_(budget) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_float(double, const std::string& text) override {
    return unexpected("the number " + text.substr(0, 40));
  }
  bool binary(Json::binary_t&) override { return unexpected("binary data"); }
  bool number_integer(int64_t value) override { return unexpected(std::to_string(value)); }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) {
      return unexpected(std::to_string(value));
    }
    if (value > INT64_MAX) return unexpected(std::to_string(value));
    if (place_ == Place::kShape && shape_.size() == kMostDims) {
      fail_tensor(fmt::format("has more than {} dimensions", kMostDims));
    }
    if (place_ == Place::kOffsets && offsets_.size() == 2) {
      fail_tensor("has more than two data_offsets; begin and end are due");
    }
    (place_ == Place::kShape ? shape_ : offsets_).push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      budget_.charge_block(sizeof(std::pair<std::string, std::string>) + 4 * sizeof(void*));
      budget_.charge_block(field_.size());
      budget_.charge_block(text.size());
      if (!result_.metadata.emplace(field_, std::string(text)).second) {
        fail(fmt::format("{} has {} twice", kMetadataKey, in_quotes(field_)));
      }
      return true;
    }
    if (place_ != Place::kTensor || field_ != "dtype") return unexpected("a string");
    dtype_ = dtype_of(text);
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = is_metadata_ ? Place::kMetadata : Place::kTensor;
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    if (place_ == Place::kTop) return begin_entry(key);
    if (place_ == Place::kTensor) mark_field(key);
    field_ = std::string(key);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) finish_tensor();
    place_ = Place::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kTensor || field_ == "dtype") return unexpected("a list");
    place_ = field_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    const bool is_text = std::string_view(e.what()).find("UTF-8") == std::string_view::npos;
    fail(fmt::format("its header is not {} (byte {})", is_text ? "JSON" : "UTF-8", position));
  }

 private:
  enum class Place { kStart, kTop, kTensor, kMetadata, kShape, kOffsets };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kData, result_.file.origin + ": " + what);
  }

  [[noreturn]] void fail_tensor(const std::string& what) const {
    fail(fmt::format("tensor {} {}", in_quotes(name_), what));
  }

  /// A value of a kind that has no business where it stands.
  [[noreturn]] bool unexpected(const std::string& what) const {
    if (is_metadata_) {
      const std::string where = place_ == Place::kTop
                                    ? ""
                                    : fmt::format(" has {} under {}, but", what, in_quotes(field_));
      fail(place_ == Place::kTop
               ? fmt::format("{} is {}; it must be an object of strings", kMetadataKey, what)
               : fmt::format("{}{} must hold strings only", kMetadataKey, where));
    }
    switch (place_) {
      case Place::kTop: fail_tensor(fmt::format("is {}; it must be an object", what));
      case Place::kShape:
      case Place::kOffsets:
        fail_tensor(fmt::format("has {} in its {}; integers from 0 to 2^63 - 1 are legal", what,
                                place_ == Place::kShape ? "shape" : "data_offsets"));
      default:
        fail_tensor(fmt::format("has {} as its {}; it must be {}", what, field_,
                                field_ == "dtype" ? "a string" : "a list of integers"));
    }
  }

  bool begin_entry(const std::string& key) {
    is_metadata_ = key == kMetadataKey;
    if (is_metadata_ && std::exchange(has_metadata_, true)) {
      fail(fmt::format("{} stands twice in its header", kMetadataKey));
    }
    if (!is_metadata_ && result_.tensors.size() == kMostTensors) {
      fail(fmt::format("holds more than {} tensors", kMostTensors));
    }
    name_ = std::string(key);
    dtype_.reset();
    has_shape_ = has_offsets_ = has_dtype_ = false;
    shape_.clear();
    offsets_.clear();
    return true;
  }

  void mark_field(const std::string& key) {
    bool* seen = key == "dtype"          ? &has_dtype_
                 : key == "shape"        ? &has_shape_
                 : key == "data_offsets" ? &has_offsets_
                                         : nullptr;
    if (seen == nullptr) {
      fail_tensor(fmt::format("has the unknown field {}; legal: dtype, shape, data_offsets",
                              in_quotes(key)));
    }
    if (std::exchange(*seen, true)) fail_tensor(fmt::format("has the field {} twice", key));
  }

  Dtype dtype_of(std::string_view text) const {
    std::string names;
    for (const Dtype dtype : kReadable) {
      if (text == dtype_name(dtype)) return dtype;
      names.append(names.empty() ? "" : ", ").append(dtype_name(dtype));
    }
    fail_tensor(fmt::format("has dtype {}; this program reads {}", in_quotes(text), names));
  }

  void finish_tensor() {
    if (!has_dtype_) fail_tensor("lacks its dtype");
    if (!has_shape_) fail_tensor("lacks its shape");
    if (offsets_.size() != 2) fail_tensor("lacks its data_offsets [begin, end]");
    const auto [begin, end] = std::pair(offsets_[0], offsets_[1]);
    if (begin > end || static_cast<uint64_t>(end) > data_.size()) {
      fail_tensor(
          fmt::format("lies at [{}, {}], outside the {} bytes of data", begin, end, data_.size()));
    }
    const auto extent = checked_extent(shape_);
    int64_t bytes = 0;
    if (!extent ||
        __builtin_mul_overflow(*extent, static_cast<int64_t>(item_size(*dtype_)), &bytes)) {
      fail_tensor(fmt::format("has the shape [{}], which is too large", fmt::join(shape_, ", ")));
    }
    if (std::find(shape_.begin(), shape_.end(), 0) != shape_.end()) bytes = 0;
    if (bytes != end - begin) {
      fail_tensor(fmt::format("has {} bytes of data; shape [{}] of {} needs {}", end - begin,
                              fmt::join(shape_, ", "), dtype_name(*dtype_), bytes));
    }
    add_tensor(data_.data() + begin);
  }

  void add_tensor(const std::byte* data) {
    // A node of the map, its strings and lists, and a pointer when the order is checked.
    budget_.charge_block(sizeof(std::pair<std::string, StoredTensor>) + 5 * sizeof(void*));
    budget_.charge_block(name_.size());
    for (int list = 0; list < 2; ++list) budget_.charge_block(shape_.size() * sizeof(int64_t));
    StoredTensor tensor{*dtype_, std::vector<int64_t>(shape_), contiguous_strides(shape_), data};
    if (!result_.tensors.emplace(std::string(name_), std::move(tensor)).second) {
      fail_tensor("stands twice in its header");
    }
  }

  std::span<const std::byte> data_;
  TensorFile& result_;
  MemoryBudget& budget_;
  Place place_ = Place::kStart;
  std::string name_;   ///< of the entry at hand
  std::string field_;  ///< of its field at hand
  bool is_metadata_ = false;
  bool has_metadata_ = false;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::optional<Dtype> dtype_;
  std::vector<int64_t> shape_;
  std::vector<int64_t> offsets_;
};

}  // namespace

MemoryBudget header_budget(std::string_view header, size_t file_bytes, const std::string& origin) {
  constexpr size_t kSlack = size_t{1} << 20;
  constexpr size_t kReserve = size_t{64} << 10;  // the parser, messages
  // The parser holds a token several times over: as read, as decoded, and in its own message.
  constexpr size_t kTokenCopies = 12;
  MemoryBudget budget(origin + ": its header", 2 * file_bytes + kSlack - kReserve);
  budget.charge(kTokenCopies * longest_token(header));
  return budget;
}

void read_header(std::string_view header, std::span<const std::byte> data, TensorFile& result) {
  header.remove_suffix(header.size() - 1 - header.find_last_not_of(' '));
  MemoryBudget budget = header_budget(header, result.file.bytes.size(), result.file.origin);
  HeaderReader reader(data, result, budget);
  Json::sax_parse(header.begin(), header.end(), &reader);
}

}  // namespace adjoin::io
