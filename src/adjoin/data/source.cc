#include "adjoin/data/source.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"

namespace adjoin::data {
namespace {

bool has_ending(std::string_view name, std::string_view ending) {
  if (name.size() <= ending.size()) return false;
  const std::string_view tail = name.substr(name.size() - ending.size());
  return std::equal(tail.begin(), tail.end(), ending.begin(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

bool has_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return has_ending(name, ending); });
}

}  // namespace

Split pixel_split(std::string name, std::vector<std::string> classes, std::vector<int64_t> labels,
                  Pixels pixels) {
  auto shared = std::make_shared<const Pixels>(std::move(pixels));
  Split split;
  split.describe = [name](int64_t image) { return fmt::format("{} image {}", name, image); };
  split.name = std::move(name);
  split.classes = std::move(classes);
  split.labels = std::move(labels);
  split.read = [shared = std::move(shared)](int64_t image) -> Stored {
    const size_t size = shared->image_bytes();
    const uint8_t* begin = shared->bytes.data() + static_cast<size_t>(image) * size;
    return Image{shared->width, shared->height, shared->channels, {begin, begin + size}};
  };
  return split;
}

std::vector<std::string> numbered_classes(int64_t count) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

FileKind kind_of(std::string_view file_name) {
  constexpr std::array<std::string_view, 3> kRead = {".jpg", ".jpeg", ".png"};
  constexpr std::array<std::string_view, 7> kNotRead = {".bmp", ".gif",  ".pgm", ".ppm",
                                                        ".tif", ".tiff", ".webp"};
  if (file_name.starts_with('.')) return FileKind::kOther;
  if (has_any(file_name, kRead)) return FileKind::kImage;
  return has_any(file_name, kNotRead) ? FileKind::kOtherImage : FileKind::kOther;
}

void refuse_other_image(const std::string& origin) {
  throw Error(ErrorKind::kData, origin +
                                    ": is an image of a format that is not read; make it a JPEG or "
                                    "a PNG, or take it out of the set");
}

void check_class_name(std::string_view name, const std::string& origin) {
  if (name.empty() || name == ".." || !is_plain_text(name)) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: {} is no name for a class, must be UTF-8 text without control "
                            "characters",
                            origin, in_quotes(name)));
  }
}

int64_t label_of(std::string_view name, const std::vector<std::string>& classes,
                 const std::string& origin) {
  const auto found = std::lower_bound(classes.begin(), classes.end(), name);
  if (found == classes.end() || *found != name) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: the training images have no class {}", origin, in_quotes(name)));
  }
  return found - classes.begin();
}

void require_folder(const std::string& path) {
  switch (place_at(path)) {
    case Place::kFolder: return;
    case Place::kNothing: throw Error(ErrorKind::kIo, path + ": there is no such folder");
    default: throw Error(ErrorKind::kData, path + ": is no folder, must be one");
  }
}

std::vector<FolderEntry> list_folder(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), &closedir);
  if (!directory) {
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be read: {}", folder, strerror(errno)));
  }
  std::vector<FolderEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(directory.get());  // NOLINT: no other thread has this DIR
    if (entry == nullptr && errno != 0) {
      throw Error(ErrorKind::kIo, fmt::format("{}: cannot be read: {}", folder, strerror(errno)));
    }
    if (entry == nullptr) break;
    if (entry->d_name[0] == '.') continue;
    const std::string name = entry->d_name;
    // The kind usually comes with the name: a million files need not be looked at one by one.
    const Place place = entry->d_type == DT_REG   ? Place::kFile
                        : entry->d_type == DT_DIR ? Place::kFolder
                                                  : place_at(folder + "/" + name);
    entries.push_back({name, place});
  }
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace adjoin::data
