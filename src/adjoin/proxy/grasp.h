#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// Minus the sum of value x (H g) over the weights of linear layers and convolutions, g the
/// gradient and H the Hessian of the loss (Wang et al. 2020, with the sign of Abdelfattah et al.
/// 2021).
double grasp(Probe& probe);

}  // namespace adjoin::proxy
