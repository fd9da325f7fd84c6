#include "adjoin/models/slice.h"

#include "adjoin/models/init.h"

namespace adjoin::models {
namespace {

/// The first entries of every group along every axis.
torch::Tensor view(const torch::Tensor& large, const std::vector<Axis>& from,
                   const std::vector<Axis>& kept) {
  auto result = large;
  int64_t dim = 0;
  for (size_t i = 0; i < from.size(); ++i, ++dim) {
    if (kept[i].count == from[i].count) continue;
    if (from[i].groups > 1) {
      result = result.unflatten(dim, {from[i].groups, from[i].count * from[i].unit});
      ++dim;
    }
    result = result.narrow(dim, 0, kept[i].count * kept[i].unit);
  }
  return result;
}

}  // namespace

Weights views(const Derived& derived, const Weights& large, const Weights& own) {
  Weights small;
  for (const auto& [info, slice] : derived.sources) {
    if (slice) {
      small.set(info.name, view(large.at(slice->name), slice->axes, info.axes));
      continue;
    }
    const auto value = own.find(info.name);
    small.set(info.name, value.defined()
                             ? value
                             : init_tensor(info, /*seed=*/0).to(large.begin()->second.options()));
  }
  return small;
}

Weights fresh_tensors(const Derived& derived, uint64_t seed) {
  Weights own;
  for (const auto& [info, slice] : derived.sources) {
    if (!slice) own.set(info.name, init_tensor(info, seed));
  }
  return own;
}

Weights plain(const Derived& derived, const Weights& views) {
  Weights small;
  for (const auto& [info, slice] : derived.sources) {
    small.set(
        info.name,
        views.at(info.name).detach().reshape(info.shape()).clone(at::MemoryFormat::Contiguous));
  }
  return small;
}

Weights copies(const Derived& derived, const Weights& large, const Weights& own) {
  return plain(derived, views(derived, large, own));
}

}  // namespace adjoin::models
