#pragma once

#include <string>

#include "adjoin/search/space.h"

namespace adjoin::search {

/// What a proxy (proxy/proxies.h) says of the networks of a space before they are trained, from
/// start values and random images: a function of the seed. What is no number counts as the least.
class Scorer {
 public:
  /// Error(kUsage) for an unknown proxy.
  Scorer(const Space& space, const std::string& proxy, uint64_t seed);

  double operator()(const Choice& choice) const;

 private:
  const Space& space_;
  const std::string proxy_;
  const uint64_t seed_;
};

}  // namespace adjoin::search
