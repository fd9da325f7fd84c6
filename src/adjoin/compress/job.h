#pragma once

// A training run whose network has small ones inside, made from a config.

#include "adjoin/compress/config.h"
#include "adjoin/train/job.h"

namespace adjoin::compress {

/// As train::prepare, and Error(kUsage) when a small network is no part of the large one.
train::Job prepare(const CompressConfig& config, const train::Launch& launch = {});

/// The small networks a config means, named "small", or "small-2", "small-4".. where there are
/// several. Norms of their own start as the large network's.
std::vector<train::InnerNetwork> inner_networks(const CompressConfig& config,
                                                const ModelSpec& large, const Weights& start);

}  // namespace adjoin::compress
