#pragma once

// What attention looks at in the layers of `adjoin inspect`.

#include "adjoin/report/inspect_layers.h"

namespace adjoin::report {

/// Entropy, rank and singular values of attention; empty where no layer has any.
std::string attention_section(const std::vector<Inspected>& networks);

}  // namespace adjoin::report
