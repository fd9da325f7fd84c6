#include "adjoin/analysis/sample.h"

#include <fmt/format.h>

#include "adjoin/core/error.h"
#include "adjoin/data/inputs.h"
#include "adjoin/data/loader.h"
#include "adjoin/data/subset.h"
#include "adjoin/train/evaluate.h"
#include "adjoin/train/job.h"

namespace adjoin::analysis {

Sample fixed_sample(const data::Split& split, const io::ModelHeader& header, int64_t images,
                    torch::Device device) {
  if (split.size() < images) {
    throw Error(ErrorKind::kData, fmt::format("{}: has {} images, but {} were asked for",
                                              split.name, split.size(), images));
  }
  train::check_classes(header, split, header.spec.name);
  const train::Group alone;
  data::Loader loader(data::limited(split, images),
                      train::evaluation_loader(header, images, 0, device, alone));
  loader.begin(0);
  const data::Batch batch = loader.next();
  Sample sample;
  for (const int64_t image : loader.unreadable()) {
    sample.unreadable.push_back(loader.split().describe(image));
  }
  const auto readable = (batch.labels >= 0).nonzero().flatten();
  if (readable.numel() == 0) {
    throw Error(ErrorKind::kData, sample.unreadable.front() + " cannot be read, nor any other");
  }
  sample.images = batch.images.index_select(0, readable);
  sample.labels = batch.labels.index_select(0, readable);
  return sample;
}

Sample stored_sample(const std::string& path, const io::ModelHeader& header, int64_t most,
                     torch::Device device) {
  std::vector<torch::Tensor> images;
  std::vector<int64_t> labels;
  for (const data::Input& input : data::read_inputs(path, header)) {
    if (std::ssize(images) == most) break;
    images.push_back(input.image);
    if (input.label) labels.push_back(*input.label);
  }
  Sample sample{torch::stack(images).to(device), {}, {}};
  if (labels.size() == images.size()) sample.labels = torch::tensor(labels).to(device);
  return sample;
}

}  // namespace adjoin::analysis
