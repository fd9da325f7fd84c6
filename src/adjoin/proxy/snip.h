#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// The sum of |value x gradient| over all that training would change (Lee et al. 2019): how much
/// the loss would change if values were switched off one by one.
double snip(Probe& probe);

/// The same over the weights of linear layers and convolutions alone (Abdelfattah et al. 2021).
double snip_weights(Probe& probe);

}  // namespace adjoin::proxy
