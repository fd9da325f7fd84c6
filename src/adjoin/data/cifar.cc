#include "adjoin/data/cifar.h"

#include <fmt/format.h>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"

namespace adjoin::data {
namespace {

constexpr int64_t kSide = 32;
constexpr int64_t kChannels = 3;
constexpr size_t kPlane = kSide * kSide;
constexpr size_t kRecord = 1 + kChannels * kPlane;
constexpr int64_t kClasses = 10;
constexpr int kTrainFiles = 5;

/// The lines of batches.meta.txt, or the names the set is published with.
std::vector<std::string> class_names(const std::string& folder) {
  const std::string path = folder + "/batches.meta.txt";
  if (place_at(path) == Place::kNothing) {
    return {"airplane", "automobile", "bird",  "cat",  "deer",
            "dog",      "frog",       "horse", "ship", "truck"};
  }
  const io::FileBytes file = io::map_file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size() && names.size() <= kClasses;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) {
      check_class_name(line, path);
      names.emplace_back(line);
    }
    at = end + 1;
  }
  if (names.size() != kClasses) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: must hold {} names of classes, one in a line", path, kClasses));
  }
  return names;
}

Split read_split(const std::string& name, const std::string& folder,
                 const std::vector<std::string>& files) {
  Pixels pixels{kSide, kSide, kChannels, {}};
  std::vector<int64_t> labels;
  for (const std::string& file : files) {
    read_cifar(io::map_file(folder + "/" + file), pixels, labels);
  }
  return pixel_split(name, class_names(folder), std::move(labels), std::move(pixels));
}

}  // namespace

void read_cifar(const io::FileBytes& file, Pixels& pixels, std::vector<int64_t>& labels) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorKind::kData, file.origin + ": " + what);
  };
  const std::span bytes(reinterpret_cast<const uint8_t*>(file.bytes.data()), file.bytes.size());
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    fail(
        fmt::format("has {} bytes, must have a multiple of {}: is it cut short, or not CIFAR-10's "
                    "binary version?",
                    bytes.size(), kRecord));
  }
  const size_t count = bytes.size() / kRecord;
  pixels.bytes.reserve(pixels.bytes.size() + count * (kRecord - 1));
  labels.reserve(labels.size() + count);
  for (size_t i = 0; i < count; ++i) {
    const auto record = bytes.subspan(i * kRecord, kRecord);
    if (record[0] >= kClasses) {
      fail(fmt::format("label {} of image {} is out of range, must be 0 to {}", record[0], i,
                       kClasses - 1));
    }
    labels.push_back(record[0]);
    for (size_t at = 1; at <= kPlane; ++at) {
      for (size_t c = 0; c < kChannels; ++c) pixels.bytes.push_back(record[at + c * kPlane]);
    }
  }
}

Source cifar10_source(const std::string& name, const std::string& folder) {
  require_folder(folder);
  const auto is_there = [&](const std::string& file) {
    return place_at(folder + "/" + file) != Place::kNothing;
  };
  std::vector<std::string> train;
  for (int i = 1; i <= kTrainFiles; ++i) train.push_back(fmt::format("data_batch_{}.bin", i));
  const std::string val = "test_batch.bin";
  if (!is_there(train[0]) && !is_there(val)) {
    throw Error(ErrorKind::kData, fmt::format("{}: has no {} to data_batch_{}.bin and no {}",
                                              folder, train[0], kTrainFiles, val));
  }
  Source source;
  if (is_there(train[0])) {
    source.train = [=] { return read_split(name + " train", folder, train); };
  }
  if (is_there(val)) source.val = [=] { return read_split(name + " val", folder, {val}); };
  return source;
}

}  // namespace adjoin::data
