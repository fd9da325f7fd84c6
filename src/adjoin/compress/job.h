#pragma once

// A training run whose network has small ones inside, made from a config.

#include "adjoin/compress/config.h"
#include "adjoin/train/job.h"

namespace adjoin::compress {

/// Error(kConfig) when the start values cannot be put in order.
void check_order(const CompressConfig& config);

/// The start values of a job with the most important heads and units first, where that is wanted.
Weights ordered_start(const train::Job& job, const CompressConfig& config);

/// As train::prepare, also for the fields that are its own, and Error(kUsage) when a small network
/// is no part of the large one. `choice`: instead of what the config says of the small network.
train::Job prepare(const CompressConfig& config, const train::Launch& launch = {},
                   const std::optional<Choice>& choice = {});

/// The small networks a config means, named "small", or "small-2", "small-4".. where there are
/// several. Norms of their own start as the large network's.
std::vector<train::InnerNetwork> inner_networks(const CompressConfig& config,
                                                const ModelSpec& large, const Weights& start,
                                                const std::optional<Choice>& choice = {});

}  // namespace adjoin::compress
