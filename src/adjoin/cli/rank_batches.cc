#include "adjoin/cli/rank_batches.h"

#include <fmt/format.h>

#include "adjoin/core/error.h"
#include "adjoin/spec/preprocessing.h"
#include "adjoin/train/job.h"

namespace adjoin::cli {

DataBatches::DataBatches(const std::string& data, int64_t size, int64_t count)
    : size_(size), count_(count) {
  data::DataOptions options;
  options.data = data;
  options.is_train_needed = false;
  options.limit_val = size * count;
  sets_ = data::open_data(options);
  if (sets_.val.size() < size * count) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: has {} images, but {} batches of {} were asked for", data,
                            sets_.val.size(), count, size));
  }
}

void DataBatches::prepare(const std::vector<ModelSpec>& networks) {
  const auto classes = static_cast<int64_t>(sets_.val.classes.size());
  for (const ModelSpec& spec : networks) {
    if (spec.num_classes < classes) {
      throw Error(ErrorKind::kConfig, fmt::format("{}: has {} classes, the data {}", spec.name,
                                                  spec.num_classes, classes));
    }
    auto [place, is_new] = kept_.try_emplace({spec.img_size, spec.in_chans});
    if (is_new) place->second = read(spec);
  }
}

std::vector<proxy::Sample> DataBatches::read(const ModelSpec& spec) const {
  const io::ModelHeader header{spec, {}, default_preprocessing(spec), {}};
  const train::Group alone;
  data::Loader loader(sets_.val, train::evaluation_loader(header, size_, 0, torch::kCPU, alone));
  std::vector<proxy::Sample> result;
  loader.begin(0);
  for (int64_t i = 0; i < count_; ++i) {
    const data::Batch batch = loader.next();
    if ((batch.labels < 0).any().item<bool>()) {
      throw Error(ErrorKind::kData, sets_.val.name + ": an image cannot be read");
    }
    result.push_back({batch.images, batch.labels});
  }
  return result;
}

}  // namespace adjoin::cli
