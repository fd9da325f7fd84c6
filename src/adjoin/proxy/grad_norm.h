#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// The norm of the gradient of all that training would change, as one vector.
double grad_norm(Probe& probe);

/// The sum over linear layers and convolutions of the norms of their weights' gradients
/// (Abdelfattah et al. 2021).
double grad_norm_layers(Probe& probe);

}  // namespace adjoin::proxy
