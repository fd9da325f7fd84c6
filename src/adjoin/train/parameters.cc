#include "adjoin/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

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

Parameters::Parameters(const ModelSpec& spec, const Weights& start, torch::Device device,
                       torch::ScalarType dtype, double layer_decay) {
  const std::vector<TensorInfo> infos = tensors(spec);
  const std::vector<int64_t> below = layers_below_head(infos);
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!infos[i].is_trained) {
      weights_.set(infos[i].name, start.at(infos[i].name).detach().to(device, dtype));
      continue;
    }
    slots_.push_back({infos[i], 0, std::pow(layer_decay, static_cast<double>(below[i]))});
  }
  std::vector<Slot*> order;
  for (Slot& slot : slots_) order.push_back(&slot);
  std::stable_sort(order.begin(), order.end(), [](const Slot* a, const Slot* b) {
    return std::tuple(a->info.has_decay, a->lr_scale) < std::tuple(b->info.has_decay, b->lr_scale);
  });
  int64_t length = 0;
  for (Slot* slot : order) {
    if (groups_.empty() || groups_.back().has_decay != slot->info.has_decay ||
        groups_.back().lr_scale != slot->lr_scale) {
      groups_.push_back({length, length, slot->lr_scale, slot->info.has_decay});
    }
    slot->begin = length;
    length += aligned(slot->info.numel());
    groups_.back().end = length;
  }
  const auto options = torch::TensorOptions().device(device).dtype(dtype);
  values_ = torch::zeros(length, options);
  gradients_ = torch::zeros(length, options);
  const torch::NoGradGuard no_grad;
  for (const Slot& slot : slots_) {
    torch::Tensor leaf = view(values_, slot).detach();
    leaf.copy_(start.at(slot.info.name));
    leaf.requires_grad_(true);
    leaf.mutable_grad() = view(gradients_, slot);
    leaves_.push_back(leaf);
    weights_.set(slot.info.name, leaf);
  }
}

torch::Tensor Parameters::view(const torch::Tensor& flat, const Slot& slot) const {
  return flat.narrow(0, slot.begin, slot.info.numel()).view(slot.info.shape());
}

Weights Parameters::weights_in(const torch::Tensor& flat) const {
  Weights result = weights_;
  for (const Slot& slot : slots_) result.set(slot.info.name, view(flat, slot));
  return result;
}

}  // namespace adjoin::train
