#include "adjoin/analysis/sample.h"

#include <fmt/format.h>

#include "adjoin/core/error.h"
#include "adjoin/data/inputs.h"
#include "adjoin/data/loader.h"
#include "adjoin/data/subset.h"
#include "adjoin/train/job.h"

namespace adjoin::analysis {

Sample fixed_sample(const data::Split& split, const io::ModelHeader& header, int64_t images,
                    torch::Device device) {
  if (split.size() < images) {
    throw Error(ErrorKind::kData, fmt::format("{}: has {} images, but {} were asked for",
                                              split.name, split.size(), images));
  }
  if (std::ssize(split.classes) > header.spec.num_classes) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: has {} classes, {} {}", header.spec.name, header.spec.num_classes,
                            split.name, split.classes.size()));
  }
  const train::Group alone;
  data::Loader loader(data::limited(split, images),
                      train::evaluation_loader(header, images, 0, device, alone));
  loader.begin(0);
  const data::Batch batch = loader.next();
  if ((batch.labels < 0).any().item<bool>()) {
    throw Error(ErrorKind::kData, split.name + ": an image cannot be read");
  }
  return {batch.images, batch.labels};
}

Sample stored_sample(const std::string& path, const io::ModelHeader& header, torch::Device device) {
  std::vector<torch::Tensor> images;
  std::vector<int64_t> labels;
  for (const data::Input& input : data::read_inputs(path, header)) {
    images.push_back(input.image);
    if (input.label) labels.push_back(*input.label);
  }
  Sample sample{torch::stack(images).to(device), {}};
  if (labels.size() == images.size()) sample.labels = torch::tensor(labels).to(device);
  return sample;
}

}  // namespace adjoin::analysis
