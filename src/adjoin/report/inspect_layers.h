#pragma once

// The layers of `adjoin inspect`, drawn over depth: how alike the tokens are (Dong, Cordonnier and
// Loukas 2021), activations and gradients, how much the first part of a block does.

#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/report/axes.h"

namespace adjoin::report {

struct Inspected {
  std::string name;  ///< no other network's
  const Json& layers;
};

/// The name of a layer, or its number.
std::string layer_name(const Json& layers, size_t index);

/// The numbers of layers, with the names of the first and the last one if all networks share them.
Axis layer_axis(const std::vector<Inspected>& networks);

/// Charts of all networks together.
std::string layers_section(const std::vector<Inspected>& networks);

/// How much of each block its first heads and hidden units do; empty where nothing says it.
std::string first_parts_section(const std::vector<Inspected>& networks);

/// Every number of every layer.
std::string layers_table(const std::vector<Inspected>& networks);

}  // namespace adjoin::report
