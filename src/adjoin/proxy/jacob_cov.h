#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// - sum of log(v + k) + 1 / (v + k) over the eigenvalues v of the correlations between images of
/// the gradients of their logits' sums (Mellor et al. 2020, first version; k = 1e-5).
double jacob_cov(Probe& probe);

}  // namespace adjoin::proxy
