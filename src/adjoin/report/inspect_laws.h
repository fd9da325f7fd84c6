#pragma once

// What theorems say of a network beside what was measured in it: bounds of the residual (Dong,
// Cordonnier and Loukas 2021), low rank of attention (Wang et al. 2020), gradients by depth and
// width (Xiong et al. 2020).

#include "adjoin/report/inspect_layers.h"

namespace adjoin::report {

/// "laws" of the result; `layers` of the first network say where a layer is. Empty where there is
/// nothing.
std::string laws_section(const Json& laws, const Json& layers);

}  // namespace adjoin::report
