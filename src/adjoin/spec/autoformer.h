#pragma once

// AutoFormer's networks (Chen et al. 2021) and the YAML files of its repository that hold them:
// SUPERNET, SEARCH_SPACE (lists) and RETRAIN (one network) of MLP_RATIO, NUM_HEADS, EMBED_DIM and
// DEPTH.

#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// One width and depth for a network, heads and MLP ratio for each of its blocks.
struct AutoformerSpace {
  std::string name;
  std::vector<int64_t> embed_dims;
  std::vector<int64_t> depths;
  std::vector<int64_t> heads;
  std::vector<double> mlp_ratios;
};

/// "autoformer-tiny", "autoformer-small", "autoformer-base", or the SEARCH_SPACE of a YAML file.
/// Error(kUsage) for another name; Error(kData), opening with the path, for what is wrong in a
/// file.
AutoformerSpace autoformer_space(const std::string& name_or_file);

/// A brief (brief.h) as AutoFormer builds it: heads of 64, relative positions up to 14 apart, the
/// mean of the patches before the head.
ModelSpec autoformer_network(Json brief);

/// The RETRAIN network of a YAML file, named as the file. Error(kData) opening with the path.
ModelSpec read_autoformer_network(const std::string& path);

}  // namespace adjoin
