#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// With all values made positive and an image of ones (TF-TAS, Zhou et al. 2022): for the matrices
/// of attention the product of the nuclear norms of weights and gradient, for other linear layers
/// the sum of |value x gradient|; the patch embedding is left out.
double dss(Probe& probe);

}  // namespace adjoin::proxy
