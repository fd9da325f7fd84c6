#pragma once

// Batches of a data set for networks of several input sizes.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/data/dataset.h"
#include "adjoin/proxy/probe.h"

namespace adjoin::cli {

/// Images of all classes alike, as each network wants them; the same for all of one size.
class DataBatches {
 public:
  /// Error(kData) when there are too few images.
  DataBatches(const std::string& data, int64_t size, int64_t count);

  /// For the networks, before threads ask. Error(kConfig) for one with fewer classes than the data.
  void prepare(const std::vector<ModelSpec>& networks);

  std::vector<proxy::Sample> operator()(const ModelSpec& spec) const {
    return kept_.at({spec.img_size, spec.in_chans});
  }

 private:
  std::vector<proxy::Sample> read(const ModelSpec& spec) const;

  int64_t size_;
  int64_t count_;
  data::DataSets sets_;
  std::map<std::pair<int64_t, int64_t>, std::vector<proxy::Sample>> kept_;
};

}  // namespace adjoin::cli
