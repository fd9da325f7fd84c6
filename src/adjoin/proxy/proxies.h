#pragma once

// All proxies by name.
//
//   Probe probe(subject_of(spec, models::init(spec, seed)), {{images, labels}});
//   for (const Proxy& proxy : proxies()) proxy.score(probe);

#include <span>
#include <string_view>

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

struct Proxy {
  std::string_view name;
  double (*score)(Probe& probe);
  size_t batches;  ///< fewest it needs
  std::string_view summary;
};

/// The two that count the network itself, params and macs, come last: what another one is worth is
/// what it says beyond them.
std::span<const Proxy> proxies();

/// Error(kUsage) with the names there are.
const Proxy& proxy_called(std::string_view name);

}  // namespace adjoin::proxy
