#include "adjoin/data/tar.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <set>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"
#include "adjoin/core/text.h"
#include "adjoin/data/tar_entry.h"

namespace adjoin::data {
namespace {

/// The path without its last part; nothing before the first slash is "".
std::string_view parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Without "." and empty parts, so that one folder has one name.
std::string tidy(std::string_view path) {
  std::string result;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (!part.empty() && part != ".") result.append(result.empty() ? "" : "/").append(part);
    at = end + 1;
  }
  return result;
}

std::string describe(const io::FileBytes& file, std::string_view path) {
  return fmt::format("{}: {}", file.origin, in_quotes(path));
}

class Indexer {
 public:
  explicit Indexer(std::vector<io::FileBytes> shards) { index_.shards = std::move(shards); }

  TarIndex run() {
    for (uint32_t shard = 0; shard < index_.shards.size(); ++shard) read_shard(shard);
    if (index_.images.empty()) {
      fail(fmt::format("holds no image in a folder; {} must hold CLASS/NAME.jpg or .png",
                       index_.shards.size() == 1 ? "a tar" : "tars"));
    }
    check_folders();
    sort_classes();
    return std::move(index_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kData, fmt::format("{}: {}", index_.shards[0].origin, what));
  }

  void read_shard(uint32_t shard) {
    const io::FileBytes& file = index_.shards[shard];
    for (uint64_t at = 0;;) {
      const auto entry = read_tar_entry(file, at);
      if (!entry) return;
      add(file, *entry, {at, shard});
      at = entry->next;
    }
  }

  void add(const io::FileBytes& file, const TarEntry& entry, TarIndex::Place place) {
    const std::string path = tidy(entry.path);
    const std::string_view folder = parent_of(path);
    const bool is_visible = !path.empty() && !last_part(path).starts_with('.');
    if (entry.kind == TarKind::kFolder && is_visible) folders_.insert(path);
    const bool is_named = entry.kind == TarKind::kFile || entry.kind == TarKind::kLink;
    const FileKind kind = is_named ? kind_of(last_part(path)) : FileKind::kOther;
    if (kind == FileKind::kOther) return;
    const std::string_view class_name = last_part(folder);
    if (class_name.starts_with('.') && class_name != "..") return;
    if (kind == FileKind::kOtherImage) refuse_other_image(describe(file, path));
    if (entry.kind == TarKind::kLink) {
      throw Error(ErrorKind::kData, describe(file, path) +
                                        " is a link; write the tar with --dereference "
                                        "--hard-dereference");
    }
    if (folder.empty()) {
      throw Error(ErrorKind::kData,
                  describe(file, path) + " lies in no folder, which would name its class");
    }
    index_.images.push_back(place);
    index_.labels.push_back(number_of(class_name, folder, file));
  }

  /// In the order they are met, for now.
  int64_t number_of(std::string_view class_name, std::string_view folder,
                    const io::FileBytes& file) {
    if (folder != last_folder_) {
      check_class_name(class_name, file.origin);
      last_folder_ = folder;
      image_folders_.emplace(folder);
      const auto number = static_cast<int64_t>(numbers_.size());
      last_number_ = numbers_.emplace(class_name, number).first->second;
    }
    return last_number_;
  }

  /// A folder that stands in a tar must have an image in it or below it.
  void check_folders() const {
    for (const std::string& folder : folders_) {
      const std::string below = folder + "/";
      const auto next = image_folders_.lower_bound(below);
      const bool has_images = image_folders_.contains(folder) ||
                              (next != image_folders_.end() && next->starts_with(below));
      if (!has_images) {
        fail(fmt::format("the folder {} holds no .jpg, .jpeg or .png", in_quotes(folder)));
      }
    }
  }

  void sort_classes() {
    std::vector<int64_t> sorted(numbers_.size());
    for (const auto& [name, number] : numbers_) {
      sorted[static_cast<size_t>(number)] = static_cast<int64_t>(index_.classes.size());
      index_.classes.push_back(name);
    }
    for (int64_t& label : index_.labels) label = sorted[static_cast<size_t>(label)];
  }

  TarIndex index_;
  std::map<std::string, int64_t, std::less<>> numbers_;  // of each class
  std::set<std::string, std::less<>> folders_;           // that have an entry of their own
  std::set<std::string, std::less<>> image_folders_;     // that images lie in
  std::string last_folder_;  // of an image; those of a folder stand together
  int64_t last_number_ = 0;
};

/// Whether a page that is read brings its neighbours: headers lie far apart.
void set_read_ahead(const std::vector<io::FileBytes>& shards, bool is_on) {
  for (const io::FileBytes& shard : shards) {
    // Only advice; where it is not taken reading is slower.
    madvise(const_cast<std::byte*>(shard.bytes.data()), shard.bytes.size(),
            is_on ? MADV_NORMAL : MADV_RANDOM);
  }
}

std::shared_ptr<TarIndex> open_tars(const std::vector<std::string>& paths) {
  std::vector<io::FileBytes> shards;
  shards.reserve(paths.size());
  for (const std::string& path : paths) shards.push_back(io::map_file(path));
  set_read_ahead(shards, false);
  auto index = std::make_shared<TarIndex>(index_tars(std::move(shards)));
  set_read_ahead(index->shards, true);
  return index;
}

/// `classes` are those of train.
Split make_split(const std::string& name, const std::shared_ptr<const TarIndex>& index,
                 std::vector<std::string> classes) {
  std::vector<int64_t> labels;  // by the labels of the index
  for (const std::string& class_name : index->classes) {
    labels.push_back(label_of(class_name, classes, index->shards[0].origin));
  }
  const auto entry_of = [index](int64_t image) {
    const TarIndex::Place place = index->images[static_cast<size_t>(image)];
    const io::FileBytes& file = index->shards[place.shard];
    auto entry = read_tar_entry(file, place.at);
    if (!entry) throw Error(ErrorKind::kData, file.origin + ": has changed since it was opened");
    return std::pair(&file, *std::move(entry));
  };
  Split split;
  split.name = name;
  split.classes = std::move(classes);
  for (const int64_t label : index->labels) {
    split.labels.push_back(labels[static_cast<size_t>(label)]);
  }
  split.read = [entry_of](int64_t image) -> Stored {
    const auto [file, entry] = entry_of(image);
    return io::FileBytes{describe(*file, entry.path), file->owner, entry.data};
  };
  split.describe = [entry_of](int64_t image) {
    const auto [file, entry] = entry_of(image);
    return describe(*file, entry.path);
  };
  return split;
}

/// The tars of a split in a folder, sorted; empty when there are none.
std::vector<std::string> find_tars(const std::string& folder, std::string_view split) {
  const std::string whole = fmt::format("{}.tar", split);
  const std::string opening = fmt::format("{}-", split);
  std::vector<std::string> found;
  bool is_whole_there = false;
  for (const FolderEntry& entry : list_folder(folder)) {
    const bool is_shard = entry.name.starts_with(opening) && entry.name.ends_with(".tar");
    if (entry.name != whole && !is_shard) continue;
    is_whole_there = is_whole_there || entry.name == whole;
    found.push_back(folder + "/" + entry.name);
  }
  if (is_whole_there && found.size() > 1) {
    throw Error(ErrorKind::kData, fmt::format("{}: holds both {} and shards of it, {}*.tar; remove "
                                              "one or the other",
                                              folder, whole, opening));
  }
  return found;
}

}  // namespace

TarIndex index_tars(std::vector<io::FileBytes> shards) { return Indexer(std::move(shards)).run(); }

Source tar_source(const std::string& name, const std::string& path) {
  std::vector<std::string> train = {path};
  std::vector<std::string> val;
  if (place_at(path) == Place::kFolder) {
    train = find_tars(path, "train");
    for (const std::string_view split : kValNames) {
      if (val.empty()) val = find_tars(path, split);
    }
    if (train.empty() && val.empty()) {
      throw Error(ErrorKind::kData,
                  path + ": holds no train.tar and val.tar, and no train-*.tar and val-*.tar");
    }
  }
  // Read even where only val is wanted: train says which classes there are.
  const auto train_index = train.empty() ? nullptr : open_tars(train);
  Source source;
  if (train_index) {
    source.train = [=] { return make_split(name + " train", train_index, train_index->classes); };
  }
  if (!val.empty()) {
    source.val = [=] {
      const auto index = open_tars(val);
      return make_split(name + " val", index, train_index ? train_index->classes : index->classes);
    };
  }
  return source;
}

}  // namespace adjoin::data
