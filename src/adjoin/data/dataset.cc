#include "adjoin/data/dataset.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "adjoin/core/error.h"
#include "adjoin/core/suggest.h"
#include "adjoin/core/text.h"
#include "adjoin/data/cifar.h"
#include "adjoin/data/folder.h"
#include "adjoin/data/idx.h"
#include "adjoin/data/source.h"
#include "adjoin/data/subset.h"
#include "adjoin/data/synthetic.h"
#include "adjoin/data/tar.h"

namespace adjoin::data {
namespace {

/// A kind of data string, "word:rest".
struct Kind {
  std::string_view word;
  std::string_view rest;  ///< what stands behind the colon, for messages
  Source (*open)(const std::string& name, const std::string& rest);
};

constexpr std::string_view kFashionMnist = "fashion-mnist";

constexpr std::array<Kind, 5> kKinds = {{{"idx", "DIR", idx_source},
                                         {"cifar10", "DIR", cifar10_source},
                                         {"folder", "DIR", folder_source},
                                         {"tar", "PATH", tar_source},
                                         {"synthetic", "CxHxWxCLASSES", synthetic_source}}};

/// "a folder, fashion-mnist, idx:DIR, ..".
std::string legal_strings() {
  std::string text = fmt::format("a folder of images, {}", kFashionMnist);
  for (const Kind& kind : kKinds) text += fmt::format(", {}:{}", kind.word, kind.rest);
  return text;
}

/// Nothing is at this path. What was meant?
[[noreturn]] void refuse(const std::string& data) {
  const std::string word = data.substr(0, data.find(':'));
  const bool is_path = word.find('/') != std::string::npos;
  const bool has_colon = !is_path && word.size() < data.size();
  std::vector<std::string> words = {std::string(kFashionMnist)};
  for (const Kind& kind : kKinds) {
    if (has_colon) words.emplace_back(kind.word);
  }
  if (!is_path && !nearest_names(word, words).empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("there is no folder and no kind of data {}{}",
                                               in_quotes(word), suggestion(word, words)));
  }
  const ErrorKind kind = has_colon ? ErrorKind::kUsage : ErrorKind::kIo;
  throw Error(kind, fmt::format("{}: there is no such {}; data must be {}", data,
                                has_colon ? "kind of data" : "folder", legal_strings()));
}

Source find_source(const std::string& data) {
  if (data.empty()) throw Error(ErrorKind::kUsage, "no data is named, must be " + legal_strings());
  if (data == kFashionMnist) return fashion_mnist_source(data);
  const size_t colon = data.find(':');
  for (const Kind& kind : kKinds) {
    if (colon == std::string::npos || data.substr(0, colon) != kind.word) continue;
    const std::string rest = data.substr(colon + 1);
    if (rest.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: names nothing, must be {}:{}", data, kind.word, kind.rest));
    }
    return kind.open(data, rest);
  }
  switch (place_at(data)) {
    case Place::kNothing: refuse(data);
    case Place::kFolder: return folder_source(data, data);
    default:
      throw Error(ErrorKind::kData,
                  fmt::format("{}: is no folder of images{}", data,
                              data.ends_with(".tar") ? "; a tar is named tar:" + data : ""));
  }
}

void check_options(const DataOptions& options) {
  if (!(options.val_fraction >= 0 && options.val_fraction < 1)) {  // NaN neither
    throw Error(ErrorKind::kUsage,
                fmt::format("--val-fraction {} must be above 0 and below 1", options.val_fraction));
  }
  for (const auto& [flag, limit] : {std::pair("--limit-train", options.limit_train),
                                    std::pair("--limit-val", options.limit_val)}) {
    if (limit < 0) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} {} must be a number of images, or 0 for all", flag, limit));
    }
  }
}

/// Error when the source does not have what was asked for.
void check_splits(const DataOptions& options, const Source& source) {
  const bool is_fraction = options.val_fraction > 0;
  const bool is_set_aside = options.set_aside > 0;
  if (source.val && is_fraction && !is_set_aside) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--val-fraction {}: {} has validation images of its own; leave the "
                            "option out, or name the training images alone",
                            options.val_fraction, options.data));
  }
  if (!options.is_train_needed) return;
  if (!source.train) {
    throw Error(ErrorKind::kData, options.data + ": has validation images, but none to train on");
  }
  if (!source.val && !is_fraction && !is_set_aside) {
    throw Error(ErrorKind::kData,
                options.data +
                    ": has no validation images of its own; --val-fraction 0.1 sets some of the "
                    "training images aside");
  }
}

/// All of both splits.
DataSets open_splits(const DataOptions& options, const Source& source) {
  if (options.set_aside > 0) {
    Split all = source.train();
    if (!source.val && options.val_fraction > 0) {  // those stay out of it
      all = divided(all, options.val_fraction).first;
    }
    auto [train, val] = divided(limited(std::move(all), options.limit_train), options.set_aside);
    return {std::move(train), std::move(val)};
  }
  if (options.val_fraction > 0) {
    auto [train, val] = divided(source.train(), options.val_fraction);
    return {std::move(train), std::move(val)};
  }
  DataSets sets;
  if (options.is_train_needed) sets.train = source.train();
  sets.val = source.val ? source.val() : source.train();
  return sets;
}

}  // namespace

Image decoded(const Stored& stored, const std::string& origin, int64_t channels) {
  if (const auto* image = std::get_if<Image>(&stored)) {
    return with_channels(*image, origin, channels);
  }
  return decode_image(std::get<io::FileBytes>(stored).bytes, origin, channels);
}

DataSets open_data(const DataOptions& options) {
  check_options(options);
  const Source source = find_source(options.data);
  check_splits(options, source);
  DataSets sets = open_splits(options, source);
  if (!options.is_train_needed) sets.train.reset();
  if (sets.train) sets.train = limited(*std::move(sets.train), options.limit_train);
  sets.val = limited(std::move(sets.val), options.limit_val);
  return sets;
}

}  // namespace adjoin::data
