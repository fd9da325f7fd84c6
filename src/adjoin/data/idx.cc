#include "adjoin/data/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"
#include "adjoin/data/codec.h"
#include "adjoin/data/gzip.h"

namespace adjoin::data {
namespace {

constexpr char kFashionFolder[] = "/usr/share/datasets/fashion-mnist";
constexpr char kFashionPackage[] = "dataset-fashion-mnist";

[[noreturn]] void fail(const io::FileBytes& file, const std::string& what) {
  throw Error(ErrorKind::kData, file.origin + ": " + what);
}

uint32_t big_endian(std::span<const uint8_t> bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

size_t header_size(size_t dims) { return 4 + 4 * dims; }

std::vector<int64_t> shape_in(const io::FileBytes& file, std::span<const uint8_t> header,
                              size_t dims) {
  constexpr uint32_t kUnsignedBytes = 0x08;
  const uint32_t magic = big_endian(header, 0);
  const auto wanted = static_cast<uint32_t>(kUnsignedBytes << 8 | dims);
  if (magic != wanted) {
    fail(file, fmt::format("opens with the magic number {:08x}, must be {:08x}: an idx file of "
                           "bytes with {} sizes",
                           magic, wanted, dims));
  }
  std::vector<int64_t> shape;
  for (size_t d = 0; d < dims; ++d) shape.push_back(big_endian(header, 4 + 4 * d));
  if (std::count(shape.begin(), shape.end(), 0) > 0) {
    fail(file, fmt::format("has the sizes {}, none may be 0", fmt::join(shape, " x ")));
  }
  return shape;
}

uint64_t byte_count(const io::FileBytes& file, const std::vector<int64_t>& shape) {
  uint64_t product = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(product, static_cast<uint64_t>(size), &product)) {
      fail(file,
           fmt::format("claims {} bytes, more than a file can hold", fmt::join(shape, " x ")));
    }
  }
  return product;
}

IdxArray read_packed(const io::FileBytes& file, size_t dims) {
  GzipReader reader(file);
  const std::vector<uint8_t> header = reader.read(header_size(dims));
  IdxArray array{shape_in(file, header, dims), {}};
  array.bytes = reader.read(byte_count(file, array.shape));
  reader.expect_end();
  return array;
}

/// One split of a folder: its two files.
struct IdxFiles {
  std::string images;
  std::string labels;
};

/// The file of a split under any of its names, if it is there.
std::optional<std::string> find_file(const std::string& folder, const std::string& part) {
  const size_t dash = part.rfind("-idx");
  for (const char* ending : {"", ".gz"}) {
    for (const char separator : {'-', '.'}) {
      std::string path = folder + "/" + part + ending;
      path[folder.size() + 1 + dash] = separator;
      if (place_at(path) == Place::kFile) return path;
    }
  }
  return std::nullopt;
}

/// Nothing when neither file is there; Error(kData) when only one is.
std::optional<IdxFiles> find_split(const std::string& folder, const std::string& split) {
  const auto images = find_file(folder, split + "-images-idx3-ubyte");
  const auto labels = find_file(folder, split + "-labels-idx1-ubyte");
  if (images && labels) return IdxFiles{*images, *labels};
  if (!images && !labels) return std::nullopt;
  throw Error(ErrorKind::kData, fmt::format("{}: {} is there, but {}-{}-ubyte[.gz] is not", folder,
                                            images ? *images : *labels, split,
                                            images ? "labels-idx1" : "images-idx3"));
}

std::vector<int64_t> read_labels(const std::string& path) {
  const IdxArray array = read_idx(io::map_file(path), 1);
  return {array.bytes.begin(), array.bytes.end()};
}

/// The numbers up to the highest label. A label nobody has, but for a 0 (EMNIST counts from 1), is
/// a sign of a broken file.
std::vector<std::string> classes_in(const std::string& path) {
  const std::vector<int64_t> labels = read_labels(path);
  const int64_t highest = *std::max_element(labels.begin(), labels.end());
  std::vector<bool> is_used(static_cast<size_t>(highest) + 1);
  for (const int64_t label : labels) is_used[static_cast<size_t>(label)] = true;
  const auto gap = std::find(is_used.begin() + 1, is_used.end(), false);
  if (gap != is_used.end()) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: holds the label {} but never {}; labels must be 0 to classes - 1",
                            path, highest, gap - is_used.begin()));
  }
  return numbered_classes(highest + 1);
}

void check_labels(const IdxFiles& files, const std::vector<int64_t>& labels, int64_t images,
                  int64_t classes) {
  if (static_cast<int64_t>(labels.size()) != images) {
    throw Error(ErrorKind::kData, fmt::format("{}: holds {} labels, but {} holds {} images",
                                              files.labels, labels.size(), files.images, images));
  }
  const auto wrong =
      std::find_if(labels.begin(), labels.end(), [&](int64_t label) { return label >= classes; });
  if (wrong != labels.end()) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: label {} of image {} is out of range, must be 0 "
                            "to {}",
                            files.labels, *wrong, wrong - labels.begin(), classes - 1));
  }
}

Split read_split(const std::string& name, const IdxFiles& files, std::vector<std::string> classes) {
  const io::FileBytes images = io::map_file(files.images);
  IdxArray array = read_idx(images, 3);
  const int64_t height = array.shape[1];
  const int64_t width = array.shape[2];
  if (std::max(height, width) > kMaxImageSide) {
    fail(images, fmt::format("holds images of {} x {} pixels, sides may be {}", width, height,
                             kMaxImageSide));
  }
  std::vector<int64_t> labels = read_labels(files.labels);
  check_labels(files, labels, array.shape[0], static_cast<int64_t>(classes.size()));
  return pixel_split(name, std::move(classes), std::move(labels),
                     {width, height, 1, std::move(array.bytes)});
}

/// `classes` empty: the labels tell them.
Source make_source(const std::string& name, const std::string& folder,
                   const std::vector<std::string>& classes) {
  const auto train = find_split(folder, "train");
  const auto val = find_split(folder, "t10k");
  if (!train && !val) {
    throw Error(
        ErrorKind::kData,
        folder + ": has no train-images-idx3-ubyte and train-labels-idx1-ubyte (or with .gz)");
  }
  const auto open = [=](const std::string& split, const IdxFiles& files) {
    return read_split(name + " " + split, files,
                      classes.empty() ? classes_in(train ? train->labels : val->labels) : classes);
  };
  Source source;
  if (train) source.train = [=] { return open("train", *train); };
  if (val) source.val = [=] { return open("val", *val); };
  return source;
}

}  // namespace

IdxArray read_idx(const io::FileBytes& file, size_t dims) {
  if (looks_like_gzip(file.bytes)) return read_packed(file, dims);
  const std::span bytes(reinterpret_cast<const uint8_t*>(file.bytes.data()), file.bytes.size());
  if (bytes.size() < header_size(dims)) {
    fail(file, fmt::format("has {} bytes, too few for an idx file", bytes.size()));
  }
  IdxArray array{shape_in(file, bytes, dims), {}};
  const auto body = bytes.subspan(header_size(dims));
  if (body.size() != byte_count(file, array.shape)) {
    fail(file, fmt::format("has {} bytes after its header, which says {}", body.size(),
                           fmt::join(array.shape, " x ")));
  }
  array.bytes.assign(body.begin(), body.end());
  return array;
}

Source idx_source(const std::string& name, const std::string& folder) {
  require_folder(folder);
  return make_source(name, folder, {});
}

Source fashion_mnist_source(const std::string& name) {
  const bool is_there = find_split(kFashionFolder, "train") && find_split(kFashionFolder, "t10k");
  if (!is_there) {
    throw Error(ErrorKind::kMissingPart,
                fmt::format("{}: is not in {}; install Debian's package {}, or name a folder that "
                            "holds it: idx:DIR",
                            name, kFashionFolder, kFashionPackage));
  }
  return make_source(name, kFashionFolder,
                     {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                      "Sneaker", "Bag", "Ankle boot"});
}

}  // namespace adjoin::data
