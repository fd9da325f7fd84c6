#include "adjoin/search/mixture.h"

#include <algorithm>
#include <limits>

#include "adjoin/models/forward.h"
#include "adjoin/models/slice.h"
#include "adjoin/nn/block.h"

namespace adjoin::search {
namespace {

size_t most_candidates(const Space& space) {
  size_t most = 0;
  for (const auto& alphas : space.alphas()) most = std::max(most, alphas.size());
  return most;
}

/// The network with the candidate in one place, or a block's last where it has fewer.
Derived network_at(const Space& space, size_t place) {
  std::vector<size_t> picks;
  for (const auto& alphas : space.alphas()) picks.push_back(std::min(place, alphas.size() - 1));
  return derive(space.large(), space.choice(picks), Geometry::kKept);
}

}  // namespace

Mixture::Mixture(const Space& space, torch::Device device) : widest_(network_at(space, 0)) {
  const size_t most = most_candidates(space);
  std::vector<uint8_t> legal;
  for (const auto& alphas : space.alphas()) {
    for (size_t j = 0; j < most; ++j) legal.push_back(j < alphas.size() ? 1 : 0);
  }
  is_legal_ = torch::tensor(legal, torch::kUInt8)
                  .to(device, torch::kBool)
                  .view({static_cast<int64_t>(space.blocks()), static_cast<int64_t>(most)});
  std::vector<int64_t> places;
  for (const TensorInfo& info : tensors(widest_.spec)) {
    if (!is_output_matrix(info)) continue;
    const Axis& axis = info.axes[1];
    const auto block = static_cast<size_t>(info.block);
    const auto& alphas = space.alphas()[block];
    scaled_.push_back({info.name, static_cast<int64_t>(places.size()), axis.size()});
    for (int64_t column = 0; column < axis.size(); ++column) {
      const int64_t unit = column / axis.unit;
      size_t last = 0;  // factors rise, so those that have a unit are the first ones
      while (last + 1 < alphas.size() && unit < axis.count * alphas[0] / alphas[last + 1]) ++last;
      places.push_back(static_cast<int64_t>(block * most + last));
    }
  }
  places_ = torch::tensor(places, torch::kInt64).to(device);
}

Weights Mixture::weights(const Weights& widest, const torch::Tensor& shares) const {
  const auto columns = shares.cumsum(1).flatten().index_select(0, places_);  // of all matrices
  Weights result;
  for (const auto& [name, tensor] : widest) result.set(name, tensor);
  for (const Scaled& matrix : scaled_) {
    result.set(matrix.name,
               widest.at(matrix.name) * columns.narrow(0, matrix.begin, matrix.columns));
  }
  return result;
}

torch::Tensor explicit_mixture(const Space& space, const Weights& large,
                               const torch::Tensor& images, const torch::Tensor& shares,
                               const nn::Context& context) {
  std::vector<Derived> networks;
  std::vector<Weights> weights;
  for (size_t j = 0; j < most_candidates(space); ++j) {
    networks.push_back(network_at(space, j));
    weights.push_back(models::views(networks.back(), large));
  }
  std::vector<std::vector<PlacedBlock>> placed;
  for (const Derived& network : networks) placed.push_back(placed_blocks(network.spec));
  const double eps = space.large().norm_eps;
  const auto mixed = [&](size_t block, const torch::Tensor& x, auto half) {
    torch::Tensor sum;
    for (size_t j = 0; j < space.alphas()[block].size(); ++j) {
      const auto share = shares[static_cast<int64_t>(block)][static_cast<int64_t>(j)];
      const auto part =
          share * nn::settled(half(placed[j][block], eps, weights[j], nn::Stream{x}, context));
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  };
  nn::Context in_full = context;
  in_full.block = [&](size_t block, const torch::Tensor& x) {
    return mixed(block, mixed(block, x, nn::attend), nn::feed_forward);
  };
  return models::forward(networks[0].spec, weights[0], images, in_full).logits();
}

torch::Tensor gumbel(const torch::Tensor& uniform) {
  constexpr double kTiny = 1e-20;  // u = 0 would be infinite
  const auto waiting = -torch::log(uniform.clamp_min(kTiny));
  return -torch::log(waiting.clamp_min(kTiny));
}

torch::Tensor softened(const torch::Tensor& logits, const torch::Tensor& noise,
                       const torch::Tensor& tau, const torch::Tensor& is_legal) {
  return ((logits + noise) / tau)
      .masked_fill(is_legal.logical_not(), -std::numeric_limits<double>::infinity())
      .softmax(-1);
}

}  // namespace adjoin::search
