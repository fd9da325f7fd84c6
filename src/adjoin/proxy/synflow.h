#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// The sum of |value x gradient| of the sum of the logits of an image of ones, with all values made
/// positive (Tanaka et al. 2020). Layer norms stay on, so in a transformer layers do not conserve
/// it.
double synflow(Probe& probe);

/// The same with layer norms taken out.
double synflow_no_norm(Probe& probe);

}  // namespace adjoin::proxy
