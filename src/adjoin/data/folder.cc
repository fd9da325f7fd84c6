#include "adjoin/data/folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"

namespace adjoin::data {
namespace {

/// A link to a folder that is gone would take its images along without a word.
void refuse_dead_link(const std::string& folder, const FolderEntry& entry) {
  if (entry.place == Place::kNothing) {
    throw Error(ErrorKind::kData, fmt::format("{}/{}: is a link to nothing; mend it or remove it",
                                              folder, entry.name));
  }
}

std::vector<std::string> class_names(const std::string& folder) {
  std::vector<std::string> names;
  for (FolderEntry& entry : list_folder(folder)) {
    refuse_dead_link(folder, entry);
    if (entry.place != Place::kFolder) continue;
    check_class_name(entry.name, folder);
    names.push_back(std::move(entry.name));
  }
  if (names.empty()) {
    throw Error(ErrorKind::kData,
                folder + ": holds no folders; images must lie in one for each class");
  }
  return names;
}

/// Paths of all images below a folder, those of inner folders included.
class ImageFinder {
 public:
  explicit ImageFinder(std::string folder) : folder_(std::move(folder)) { visit(""); }

  /// Relative to the folder.
  std::vector<std::string> take() {
    std::sort(images_.begin(), images_.end());
    return std::move(images_);
  }

 private:
  /// `inner` is "", or a path below the folder with a slash at its end.
  void visit(const std::string& inner) {
    const std::string path = (folder_ + "/" + inner).substr(0, folder_.size() + inner.size());
    check_new(path);
    for (const FolderEntry& entry : list_folder(path)) {
      refuse_dead_link(path, entry);
      if (entry.place == Place::kFolder) {
        visit(inner + entry.name + "/");
        continue;
      }
      const FileKind kind = kind_of(entry.name);
      if (kind == FileKind::kOtherImage) refuse_other_image(path + "/" + entry.name);
      if (kind == FileKind::kOther) continue;
      if (entry.place != Place::kFile) {
        throw Error(ErrorKind::kData, path + "/" + entry.name + ": is no regular file");
      }
      images_.push_back(inner + entry.name);
    }
  }

  /// Links can lead back to where they are.
  void check_new(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
      throw Error(ErrorKind::kIo, fmt::format("{}: cannot be read: {}", path, strerror(errno)));
    }
    if (!seen_.emplace(status.st_dev, status.st_ino).second) {
      throw Error(ErrorKind::kData,
                  path + ": is a folder that this class holds already; remove the link to it");
    }
  }

  std::string folder_;
  std::vector<std::string> images_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

/// Where the images of a split lie, in few allocations.
class ImagePaths {
 public:
  explicit ImagePaths(std::string folder) : folder_(std::move(folder)) {}

  void add(const std::string& class_name, std::span<const std::string> images) {
    classes_.push_back({class_name, static_cast<int64_t>(ends_.size())});
    for (const std::string& image : images) {
      text_ += image;
      ends_.push_back(text_.size());
    }
  }

  std::string operator[](int64_t image) const {
    const auto after = std::upper_bound(
        classes_.begin(), classes_.end(), image,
        [](int64_t value, const FirstImage& entry) { return value < entry.image; });
    const auto i = static_cast<size_t>(image);
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return fmt::format("{}/{}/{}", folder_, std::prev(after)->class_name,
                       std::string_view(text_).substr(begin, ends_[i] - begin));
  }

 private:
  struct FirstImage {
    std::string class_name;
    int64_t image;
  };

  std::string folder_;
  std::vector<FirstImage> classes_;
  std::string text_;  // the paths below the class folders, one after the other
  std::vector<size_t> ends_;
};

Split read_split(const std::string& name, const std::string& folder,
                 std::vector<std::string> classes) {
  auto paths = std::make_shared<ImagePaths>(folder);
  Split split;
  for (const std::string& class_name : class_names(folder)) {
    const std::string class_folder = folder + "/" + class_name;
    const int64_t label = label_of(class_name, classes, class_folder);
    const std::vector<std::string> images = ImageFinder(class_folder).take();
    if (images.empty()) {
      throw Error(ErrorKind::kData,
                  class_folder + ": holds no .jpg, .jpeg or .png; fill it or remove it");
    }
    paths->add(class_name, images);
    split.labels.insert(split.labels.end(), images.size(), label);
  }
  split.name = name;
  split.classes = std::move(classes);
  split.read = [paths](int64_t image) -> Stored { return io::map_file((*paths)[image]); };
  split.describe = [paths](int64_t image) { return (*paths)[image]; };
  return split;
}

}  // namespace

Source folder_source(const std::string& name, const std::string& folder) {
  require_folder(folder);
  const auto find = [&](std::string_view split) -> std::optional<std::string> {
    const std::string path = fmt::format("{}/{}", folder, split);
    return place_at(path) == Place::kFolder ? std::optional(path) : std::nullopt;
  };
  auto train = find("train");
  std::optional<std::string> val;
  for (const std::string_view split : kValNames) {
    if (!val) val = find(split);
  }
  if (!train && !val) train = folder;
  const auto open = [=](const std::string& split, const std::string& path) {
    return read_split(name + " " + split, path, class_names(train.value_or(path)));
  };
  Source source;
  if (train) source.train = [=] { return open("train", *train); };
  if (val) source.val = [=] { return open("val", *val); };
  return source;
}

}  // namespace adjoin::data
