#pragma once

// Images with labels, as a user names them: "fashion-mnist", "idx:DIR", "cifar10:DIR",
// "folder:DIR" or a plain path, "tar:..", "synthetic:3x224x224x1000". docs/data.md lists them.

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "adjoin/data/image.h"
#include "adjoin/io/file_bytes.h"

namespace adjoin::data {

/// An image as a set holds it: a JPEG or PNG still encoded, or pixels.
using Stored = std::variant<io::FileBytes, Image>;

/// Its pixels, decoded if need be, grey (channels 1) or RGB (3). Error(kData) opening with `origin`
/// when it is broken.
Image decoded(const Stored& stored, const std::string& origin, int64_t channels);

/// One split of a set.
struct Split {
  std::string name;                           ///< for messages: "cifar10:DIR train"
  std::vector<std::string> classes;           ///< their names, in the order of the labels
  std::vector<int64_t> labels;                ///< of each image, 0 to classes.size() - 1
  std::function<Stored(int64_t image)> read;  ///< any thread may call it; Error(kData) or (kIo)
  std::function<std::string(int64_t image)> describe;  ///< which image that is, for messages

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

struct DataOptions {
  std::string data;         ///< the data string
  double val_fraction = 0;  ///< of a set without its own validation split, this much of train
  int64_t limit_train = 0;  ///< so many images spread evenly over the classes; 0: all
  int64_t limit_val = 0;
  double set_aside = 0;  ///< judge by this share of the training images, whatever else there is
  bool is_train_needed = true;  ///< else a single split is the one to evaluate on
};

struct DataSets {
  std::optional<Split> train;
  Split val;
};

/// Error(kUsage) for a string of no known kind; Error(kData) or (kIo) naming the file that is
/// missing, broken, or holds a label out of range, or the class that is empty.
DataSets open_data(const DataOptions& options);

}  // namespace adjoin::data
