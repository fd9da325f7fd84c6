#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// The sum over linear layers and convolutions of log of the sum over weights of the mean of
/// |gradient| over the batches by its standard deviation (Li et al. 2023). Needs two batches at
/// least.
double zico(Probe& probe);

}  // namespace adjoin::proxy
