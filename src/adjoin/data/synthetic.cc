#include "adjoin/data/synthetic.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "adjoin/core/error.h"
#include "adjoin/core/rng.h"
#include "adjoin/core/table.h"

namespace adjoin::data {
namespace {

// What a random number is for.
constexpr uint64_t kPatterns = 1;
constexpr uint64_t kTrainNoise = 2;
constexpr uint64_t kValNoise = 3;

struct Form {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t classes = 0;
  int64_t count = 2048;
};

struct Part {
  const char* word;
  int64_t Form::*value;
  int64_t most;
};

constexpr std::array<Part, 5> kParts = {{{"channels", &Form::channels, 3},
                                         {"height", &Form::height, 4096},
                                         {"width", &Form::width, 4096},
                                         {"classes", &Form::classes, 100'000},
                                         {"count", &Form::count, 10'000'000}}};

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: {}, must be like synthetic:3x224x224x1000 (channels, height, width, "
                          "classes) or with the count of images, synthetic:3x224x224x1000x2048",
                          name, what));
}

/// All of the text as a number; nothing when it is none.
std::optional<int64_t> to_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = code == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

Form parse(const std::string& name, std::string_view form) {
  Form result;
  size_t count = 0;
  for (size_t at = 0; at <= form.size(); ++count) {
    const size_t end = std::min(form.find('x', at), form.size());
    const std::string text(form.substr(at, end - at));
    at = end + 1;
    if (count == kParts.size()) refuse(name, "has more than five numbers");
    const Part& part = kParts[count];
    const auto value = to_number(text);
    if (!value || *value < 1 || *value > part.most) {
      refuse(name, fmt::format("{} is \"{}\" and must be 1 to {}", part.word, text,
                               with_commas(part.most)));
    }
    result.*part.value = *value;
  }
  if (count < kParts.size() - 1) refuse(name, fmt::format("has {} numbers", count));
  if (result.channels == 2) refuse(name, "channels is 2 and must be 1 or 3");
  return result;
}

/// Brightness of a class in each of 4 x 4 fields of the image, and noise of the same strength.
Image make_image(const Form& form, int64_t label, uint64_t noise_of, int64_t image) {
  constexpr int64_t kFields = 4;
  constexpr int64_t kLevels = 81;  // 24 + 80 + 127 is below 256
  Image result{form.width, form.height, form.channels, {}};
  const auto row_bytes = static_cast<size_t>(form.width * form.channels);
  result.pixels.resize(row_bytes * static_cast<size_t>(form.height));
  Rng noise(stream_key(noise_of, {static_cast<uint64_t>(image)}));
  std::vector<uint8_t> base(row_bytes);
  int64_t base_row = -1;
  for (int64_t y = 0; y < form.height; ++y) {
    const int64_t field_row = y * kFields / form.height;
    for (size_t i = 0; field_row != base_row && i < row_bytes; ++i) {
      const int64_t x = static_cast<int64_t>(i) / form.channels;
      const int64_t field = field_row * kFields + x * kFields / form.width;
      Rng rng(stream_key(kPatterns, {static_cast<uint64_t>(label), static_cast<uint64_t>(field),
                                     i % static_cast<size_t>(form.channels)}));
      base[i] = static_cast<uint8_t>(24 + rng.below(kLevels));
    }
    base_row = field_row;
    uint8_t* row = result.pixels.data() + static_cast<size_t>(y) * row_bytes;
    for (size_t i = 0; i < row_bytes; i += 8) {
      uint64_t bits = noise.next() & 0x7f7f7f7f7f7f7f7fU;
      for (size_t j = i; j < std::min(i + 8, row_bytes); ++j, bits >>= 8) {
        row[j] = static_cast<uint8_t>(base[j] + (bits & 0xff));
      }
    }
  }
  return result;
}

Split make_split(const std::string& name, const Form& form, int64_t count, uint64_t noise_of) {
  Split split;
  split.name = name;
  split.classes = numbered_classes(form.classes);
  split.labels.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) split.labels[static_cast<size_t>(i)] = i % form.classes;
  split.read = [form, noise_of](int64_t image) -> Stored {
    return make_image(form, image % form.classes, noise_of, image);
  };
  split.describe = [name](int64_t image) { return fmt::format("{} image {}", name, image); };
  return split;
}

}  // namespace

Source synthetic_source(const std::string& name, const std::string& form) {
  const Form parsed = parse(name, form);
  const auto open = [=](const char* split, int64_t count, uint64_t noise_of) {
    return make_split(fmt::format("{} {}", name, split), parsed, count, noise_of);
  };
  const int64_t val_count = std::max<int64_t>(1, parsed.count / 4);
  return {[=] { return open("train", parsed.count, kTrainNoise); },
          [=] { return open("val", val_count, kValNoise); }};
}

}  // namespace adjoin::data
