#pragma once

// A small network in geometry `kept` is the first heads and hidden units of every block. In a
// network that was trained without knowing this the first ones are any ones. Heads and hidden units
// can change places without changing what the network computes, so the important ones are put
// first before the small network is cut out.

#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/spec/model_spec.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::compress {

enum class Order { kNone, kMagnitude, kTaylor };

/// How much each head and each hidden unit of one block matters: 1-D, float64, on the CPU.
struct Importance {
  torch::Tensor heads;
  torch::Tensor hidden;
};

/// The sum of squares of all weights a head or unit owns (rows, columns and biases), per block.
std::vector<Importance> magnitude(const ModelSpec& spec, const Weights& weights);

/// The first-order change of the loss when a head or unit is switched off, squared and summed over
/// the images (Molchanov et al. 2019, with a gate on what the output projection reads). The loss is
/// cross entropy with `labels` (B), class indices.
std::vector<Importance> taylor(const ModelSpec& spec, const Weights& weights,
                               const torch::Tensor& images, const torch::Tensor& labels);

/// The same network with the most important heads and units of every block first; equal ones keep
/// their order. Every value stays what it is, only its place changes.
Weights reordered(const ModelSpec& spec, const Weights& weights,
                  const std::vector<Importance>& importance);

}  // namespace adjoin::compress

namespace adjoin {

template <>
inline constexpr auto kEnumNames<compress::Order> =
    std::to_array<EnumName<compress::Order>>({{"none", compress::Order::kNone},
                                              {"magnitude", compress::Order::kMagnitude},
                                              {"taylor", compress::Order::kTaylor}});

}  // namespace adjoin
