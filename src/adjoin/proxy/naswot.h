#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// log |det K|, K counting for two images the units that are on in both or off in both (Mellor et
/// al. 2021). A unit is what enters a GELU, per token; it is on where it is above 0.
double naswot(Probe& probe);

}  // namespace adjoin::proxy
