#pragma once

// Many architectures scored by some proxies, on several cores.

#include <functional>
#include <string>
#include <vector>

#include "adjoin/proxy/proxies.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin::proxy {

struct RankOptions {
  std::vector<const Proxy*> proxies;
  std::vector<uint64_t> seeds = {0};  ///< of start values
  int threads = 1;                    ///< architectures at a time
};

/// One architecture. Scores are means over seeds and batches.
struct Scored {
  std::string name;
  int64_t params = 0;
  int64_t macs = 0;
  std::vector<double> scores;   ///< of each proxy; NaN where one came out so
  std::vector<double> spreads;  ///< standard deviation over seeds and batches; 0 of a single one
  std::vector<double>
      seconds;  ///< that each proxy took, what they share counted where it came first
};

/// The batches to score a network on: each in turn is the first one of a proxy's batches.
using BatchSource = std::function<std::vector<Sample>(const ModelSpec& spec)>;

Scored score(const ModelSpec& spec, const RankOptions& options, const BatchSource& batches);

/// Calls `take` with each, in the order of the networks, whoever computed them; ends early when it
/// returns false. What an architecture needs is gone before the next one is begun.
void score_all(const std::vector<ModelSpec>& networks, const RankOptions& options,
               const BatchSource& batches, const std::function<bool(const Scored&)>& take);

/// Images drawn from N(0, 1) and labels at random, a function of seed and shape.
std::vector<Sample> random_batches(const ModelSpec& spec, int64_t size, int64_t count,
                                   uint64_t seed);

}  // namespace adjoin::proxy
