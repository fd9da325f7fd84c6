#pragma once

#include "adjoin/proxy/probe.h"

namespace adjoin::proxy {

/// Per output channel of a linear layer or convolution half the mean over the images of
/// (sum over tokens or places of activation x gradient)^2, times the weights of the channel, summed
/// (Turner et al. 2020, as in Abdelfattah et al. 2021). Their code sums over the last axes and so
/// takes channels for tokens in a transformer; here tokens are summed.
double fisher(Probe& probe);

}  // namespace adjoin::proxy
