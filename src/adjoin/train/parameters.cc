#include "adjoin/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "adjoin/models/slice.h"

namespace adjoin::train {
namespace {

/// Tensors begin at multiples of this: 64 bytes in float32, what vector units like.
constexpr int64_t kAlignment = 16;

int64_t aligned(int64_t length) { return (length + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

std::vector<int64_t> layers_below_head(const std::vector<TensorInfo>& infos) {
  int64_t last_block = -1;
  size_t after_blocks = 0;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].block < 0) continue;
    last_block = std::max(last_block, infos[i].block);
    after_blocks = i + 1;
  }
  std::vector<int64_t> result;
  int64_t seen = -1;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].block >= 0) seen = infos[i].block;
    // Between blocks (merging): with the block that follows. Before the first: the stem.
    const int64_t between = seen < 0 ? 0 : seen + 2;
    const int64_t layer = i >= after_blocks     ? last_block + 2
                          : infos[i].block >= 0 ? infos[i].block + 1
                                                : between;
    result.push_back(last_block + 2 - layer);
  }
  return result;
}

Parameters::Parameters(const ModelSpec& spec, const Weights& start,
                       const std::vector<InnerNetwork>& inner, torch::Device device,
                       torch::ScalarType dtype, double layer_decay) {
  networks_.push_back({"", tensors(spec), 1, {}, {}, {}});
  for (const InnerNetwork& network : inner) {
    std::vector<TensorInfo> infos;
    for (const Source& source : network.derived.sources) infos.push_back(source.tensor);
    networks_.push_back({network.name + ".", infos, network.own_lr_scale, network.derived, {}, {}});
  }
  for (size_t i = 0; i < networks_.size(); ++i) add_slots(i, layer_decay);
  lay_out();
  const auto options = torch::TensorOptions().device(device).dtype(dtype);
  values_ = torch::zeros(length_, options);
  gradients_ = torch::zeros(length_, options);
  for (size_t i = 0; i < networks_.size(); ++i) {
    const Weights& from = i == 0 ? start : inner[i - 1].own;
    for (const Slot& slot : slots_) {
      if (slot.network == i) view(values_, slot).copy_(from.at(slot.info.name).detach());
    }
    for (size_t k = 0; k < networks_[i].infos.size(); ++k) {
      const std::string& name = networks_[i].infos[k].name;
      if (!networks_[i].infos[k].is_trained && networks_[i].is_own(k)) {
        networks_[i].fixed.set(name,
                               from.at(name).detach().to(device, dtype, /*non_blocking=*/false,
                                                         /*copy=*/true));
      }
    }
    add_leaves(i);
  }
}

/// Whether a tensor is stored for this network alone.
bool Parameters::Network::is_own(size_t tensor) const {
  return !derived || !derived->sources[tensor].slice;
}

void Parameters::add_slots(size_t network, double layer_decay) {
  const std::vector<TensorInfo>& infos = networks_[network].infos;
  const std::vector<int64_t> below = layers_below_head(infos);
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!infos[i].is_trained || !networks_[network].is_own(i)) continue;
    const double scale = std::pow(layer_decay, static_cast<double>(below[i]));
    slots_.push_back({network, infos[i], 0, scale * networks_[network].lr_scale});
  }
}

/// Gives every tensor its place: those that are optimized alike are neighbours.
void Parameters::lay_out() {
  std::vector<Slot*> order;
  for (Slot& slot : slots_) order.push_back(&slot);
  std::stable_sort(order.begin(), order.end(), [](const Slot* a, const Slot* b) {
    return std::tuple(a->info.has_decay, a->lr_scale) < std::tuple(b->info.has_decay, b->lr_scale);
  });
  for (Slot* slot : order) {
    if (groups_.empty() || groups_.back().has_decay != slot->info.has_decay ||
        groups_.back().lr_scale != slot->lr_scale) {
      groups_.push_back({length_, length_, slot->lr_scale, slot->info.has_decay});
    }
    slot->begin = length_;
    length_ += aligned(slot->info.numel());
    groups_.back().end = length_;
  }
}

void Parameters::add_leaves(size_t network) {
  const Weights values = weights_in(values_, network);
  const Weights gradients = weights_in(gradients_, network);
  for (const TensorInfo& info : networks_[network].infos) {
    torch::Tensor leaf = values.at(info.name).detach();
    if (info.is_trained) {
      leaf.requires_grad_(true);
      leaf.mutable_grad() = gradients.at(info.name);
      leaves_.push_back(leaf);
    }
    networks_[network].weights.set(info.name, leaf);
  }
}

torch::Tensor Parameters::view(const torch::Tensor& flat, const Slot& slot) const {
  return flat.narrow(0, slot.begin, slot.info.numel()).view(slot.info.shape());
}

Weights Parameters::weights_in(const torch::Tensor& flat, size_t network) const {
  Weights own = networks_[network].fixed;
  for (const Slot& slot : slots_) {
    if (slot.network == network) own.set(slot.info.name, view(flat, slot));
  }
  if (network == 0) return own;
  return models::views(*networks_[network].derived, weights_in(flat), own);
}

NamedTensors Parameters::tensors_in(const torch::Tensor& flat) const {
  NamedTensors result;
  for (const Slot& slot : slots_) {
    result.emplace_back(networks_[slot.network].prefix + slot.info.name, view(flat, slot));
  }
  return result;
}

NamedTensors Parameters::fixed() const {
  NamedTensors result;
  for (const Network& network : networks_) {
    for (const auto& [name, tensor] : network.fixed) {
      result.emplace_back(network.prefix + name, tensor);
    }
  }
  return result;
}

}  // namespace adjoin::train
