#include "adjoin/core/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"

namespace adjoin {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxWeight = 100000;  // scalars of 64 bytes, aliases written out
constexpr size_t kMaxKeys = 10000;  // of one map: keys that keep their order are searched in turn

// ---- scalars

bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t count_digits(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

/// Digits, with a point, with an exponent: the core schema's float, without its sign.
bool is_decimal(std::string_view text) {
  const size_t whole = count_digits(text);
  text.remove_prefix(whole);
  size_t fraction = 0;
  if (text.starts_with('.')) {
    fraction = count_digits(text.substr(1));
    text.remove_prefix(1 + fraction);
  }
  if (whole + fraction == 0) return false;
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && count_digits(text) == text.size();
}

[[noreturn]] void throw_too_large(std::string_view text) {
  throw Error(ErrorKind::kConfig,
              fmt::format("the number {} does not fit into 64 bits", in_quotes(text)));
}

Json parse_integer(std::string_view text, std::string_view digits, int base, bool is_negative) {
  uint64_t size = 0;
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), size, base);
  const uint64_t most_negative = uint64_t{1} << 63;
  if (failure != std::errc() || (is_negative && size > most_negative)) throw_too_large(text);
  if (is_negative) return static_cast<int64_t>(-size);
  if (size < most_negative) return static_cast<int64_t>(size);
  return size;
}

std::optional<Json> parse_based_integer(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : text.starts_with("0o") ? 8 : 0;
  if (base == 0 || text.size() == 2) return std::nullopt;
  const std::string_view digits = text.substr(2);
  const std::string_view legal = base == 16 ? "0123456789abcdefABCDEF" : "01234567";
  if (digits.find_first_not_of(legal) != std::string_view::npos) return std::nullopt;
  return parse_integer(text, digits, base, false);
}

std::optional<Json> parse_number(std::string_view text) {
  if (auto based = parse_based_integer(text)) return based;
  const bool is_negative = text.starts_with('-');
  std::string_view size = text;
  if (is_negative || text.starts_with('+')) size.remove_prefix(1);
  if (size == ".inf" || size == ".Inf" || size == ".INF") {
    const double infinity = std::numeric_limits<double>::infinity();
    return is_negative ? -infinity : infinity;
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (!is_decimal(size)) return std::nullopt;
  if (count_digits(size) == size.size()) return parse_integer(text, size, 10, is_negative);
  double value = 0;
  const auto [end, failure] = std::from_chars(size.data(), size.data() + size.size(), value);
  if (failure != std::errc()) throw_too_large(text);
  return is_negative ? -value : value;
}

// ---- documents

/// Builds the value of a document as the parser walks through it.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string_view origin) : origin_(origin) {}

  Json take() { return std::move(result_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(mark, "a second document begins; one file holds one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (is_key_next()) fail(mark, "a key is missing");
    add_scalar(mark, anchor, nullptr);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias stands inside of what it means");
    if (is_key_next()) fail(mark, "a key must be text");
    const auto& [value, extent] = found->second;
    count(mark, extent.weight);
    add(mark, YAML::NullAnchor, value, extent);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (is_key_next()) {
      add_key(mark, text);
      return;
    }
    if (tag == "!" || tag == "tag:yaml.org,2002:str") {
      add_scalar(mark, anchor, text);
      return;
    }
    check_tag(mark, tag);
    Json value;
    try {
      value = yaml_scalar(text);
    } catch (const Error& e) {
      fail(mark, e.what());
    }
    add_scalar(mark, anchor, std::move(value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Json::array());
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Json::object());
  }
  void OnMapEnd() override { close(); }

 private:
  /// The room a value takes, in scalars of 64 bytes, and the levels below it.
  struct Extent {
    size_t weight = 1;
    size_t depth = 0;
  };

  struct Open {
    Json value;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    Extent extent = {};
    std::set<std::string> keys = {};
    std::optional<std::string> key = {};
  };

  [[noreturn]] void fail(const YAML::Mark& mark, std::string_view what) const {
    throw Error(ErrorKind::kConfig, fmt::format("{}:{}: {}", origin_, mark.line + 1, what));
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?") fail(mark, fmt::format("the tag {} means nothing here", tag));
  }

  bool is_key_next() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().key;
  }

  void add_key(const YAML::Mark& mark, const std::string& key) {
    Open& map = open_.back();
    if (!map.keys.insert(key).second) {
      fail(mark, fmt::format("key {} stands twice", in_quotes(key)));
    }
    if (map.keys.size() > kMaxKeys) fail(mark, fmt::format("more than {} keys", kMaxKeys));
    map.key = key;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Json value) {
    if (is_key_next()) fail(mark, "a key must be text");
    if (tag != "!" && tag != "tag:yaml.org,2002:seq" && tag != "tag:yaml.org,2002:map") {
      check_tag(mark, tag);
    }
    check_depth(mark, open_.size() + 1);
    count(mark, 1);
    open_.push_back({std::move(value), mark, anchor});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(done.mark, done.anchor, std::move(done.value), done.extent);
  }

  void add_scalar(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
    const size_t bytes = value.is_string() ? value.get_ref<const std::string&>().size() : 0;
    const Extent extent{1 + bytes / 64, 0};
    count(mark, extent.weight);
    add(mark, anchor, std::move(value), extent);
  }

  void check_depth(const YAML::Mark& mark, size_t depth) const {
    if (depth > kMaxDepth) fail(mark, fmt::format("nests deeper than {}", kMaxDepth));
  }

  void add(const YAML::Mark& mark, YAML::anchor_t anchor, Json value, Extent extent) {
    check_depth(mark, open_.size() + extent.depth);
    if (anchor != YAML::NullAnchor) {
      count(mark, extent.weight);  // what is kept for aliases takes room too
      anchors_[anchor] = {value, extent};
    }
    if (open_.empty()) {
      result_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    parent.extent.weight += extent.weight;
    parent.extent.depth = std::max(parent.extent.depth, extent.depth + 1);
    if (parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else {
      parent.value[*parent.key] = std::move(value);
      parent.key.reset();
    }
  }

  void count(const YAML::Mark& mark, size_t weight) {
    weight_ += weight;
    if (weight_ > kMaxWeight) fail(mark, fmt::format("more than {} values", kMaxWeight));
  }

  std::string_view origin_;
  Json result_;
  int documents_ = 0;
  size_t weight_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::pair<Json, Extent>> anchors_;
};

/// The parser's words, or ours where a user would not see what to do.
std::string_view reason(const YAML::Exception& e) {
  // Not constexpr: from yaml-cpp 0.8 on its messages are strings.
  const std::pair<std::string_view, std::string_view> reasons[] = {
      {YAML::ErrorMsg::EOF_IN_SCALAR, "a quote above is not closed"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a [ is not closed"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "a { is not closed"},
      {YAML::ErrorMsg::MAP_VALUE,
       "a \":\" with no key before it; text that holds one needs quotes"},
      {YAML::ErrorMsg::END_OF_MAP, "a line that is no \"key: value\", or is indented otherwise"},
      {YAML::ErrorMsg::END_OF_SEQ, "a line that is no \"- item\", or is indented otherwise"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR, "an alias without an anchor"}};
  for (const auto& [theirs, ours] : reasons) {
    if (e.msg.starts_with(theirs)) return ours;  // some go on with a name
  }
  return e.msg;
}

/// YAML knows no control characters, and the parser takes some of them for the end of the file.
void check_characters(std::string_view text, std::string_view origin) {
  if (text.size() > kMostYamlBytes) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: larger than {} bytes", origin, kMostYamlBytes));
  }
  if (!is_utf8(text)) throw Error(ErrorKind::kConfig, fmt::format("{}: is not UTF-8", origin));
  int64_t line = 1;
  for (const char c : text) {
    const bool is_control =
        (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) && c != '\t' && c != '\n' && c != '\r';
    if (is_control) {
      throw Error(ErrorKind::kConfig, fmt::format("{}:{}: holds the control character \\x{:02x}",
                                                  origin, line, static_cast<int>(c)));
    }
    line += c == '\n' ? 1 : 0;
  }
}

}  // namespace

Json yaml_scalar(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (auto number = parse_number(text)) return *number;
  return std::string(text);
}

Json parse_yaml(std::string_view text, std::string_view origin) {
  check_characters(text, origin);
  // A comment at the end changes nothing, but a quote that is never closed then runs into it: the
  // parser would take the end of the file for its end.
  std::istringstream stream(std::string(text) + (text.ends_with('\n') ? "#" : "\n#"));
  Builder builder(origin);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    const std::string place = e.mark.is_null() ? "" : fmt::format(":{}", e.mark.line + 1);
    throw Error(ErrorKind::kConfig, fmt::format("{}{}: not YAML: {}", origin, place, reason(e)));
  }
  return builder.take();
}

Json read_yaml_file(const std::string& path) {
  return parse_yaml(read_text_file(path, kMostYamlBytes), path);
}

}  // namespace adjoin
