#pragma once

// What the sources of images share: splits that are opened only when they are needed, images that
// lie in memory, and which files and class names belong to a set. Of use inside data only.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adjoin/core/place.h"
#include "adjoin/data/dataset.h"

namespace adjoin::data {

/// The splits that a source has; the others are empty functions. A set in one piece is `train`.
/// Both splits have the same classes, those of train.
struct Source {
  std::function<Split()> train;
  std::function<Split()> val;
};

/// The names a set in folders or tars may have for its validation images, the first that is there.
inline constexpr std::string_view kValNames[] = {"val", "validation", "test"};

/// Images of one size, one after the other.
struct Pixels {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 0;
  std::vector<uint8_t> bytes;

  size_t image_bytes() const { return static_cast<size_t>(width * height * channels); }
};

/// A split of images in memory, which copies of it share.
Split pixel_split(std::string name, std::vector<std::string> classes, std::vector<int64_t> labels,
                  Pixels pixels);

/// "0", "1", .. for classes without names.
std::vector<std::string> numbered_classes(int64_t count);

/// What a file is by its name. Names that begin with a dot are of kind kOther.
enum class FileKind { kImage, kOtherImage, kOther };
FileKind kind_of(std::string_view file_name);

/// An image in a format that is not read: leaving it out would change the set without a word.
[[noreturn]] void refuse_other_image(const std::string& origin);

/// Error(kData) when the name cannot stand in a table or a model file.
void check_class_name(std::string_view name, const std::string& origin);

/// Where `name` stands in the sorted `classes`; Error(kData) saying that train does not have it.
int64_t label_of(std::string_view name, const std::vector<std::string>& classes,
                 const std::string& origin);

/// Error(kIo) when there is nothing at the path, Error(kData) when it is no folder.
void require_folder(const std::string& path);

struct FolderEntry {
  std::string name;
  Place place;
};

/// What a folder holds, without what begins with a dot, sorted by name. Error(kIo).
std::vector<FolderEntry> list_folder(const std::string& folder);

}  // namespace adjoin::data
