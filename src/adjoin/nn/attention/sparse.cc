#include "adjoin/nn/attention/sparse.h"

#include <limits>

#include "adjoin/spec/sparse.h"

namespace adjoin::nn {
namespace {

/// What is added to scores: 0 where a query sees a key, else minus infinity.
///
/// (padded, near + far)
torch::Tensor mask_of(const torch::Tensor& like, const Mixer& mixer, const Context& context) {
  const int64_t tokens = like.size(2);
  const auto key = fmt::format("sparse {} {} {} {}", tokens, to_json(mixer).dump(),
                               like.device().str(), static_cast<int>(like.scalar_type()));
  return constant(context, key, [&] {
    const std::vector<bool> seen = sparse_mask(mixer, tokens);
    std::vector<float> scores(seen.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      scores[i] = seen[i] ? 0 : -std::numeric_limits<float>::infinity();
    }
    const int64_t rows = sparse_layout(mixer, tokens).padded;
    return torch::tensor(scores).view({rows, -1}).to(like.device(), like.scalar_type());
  });
}

/// Groups of tokens, and how a query finds its keys in them.
class Groups {
 public:
  Groups(const Mixer& mixer, int64_t tokens)
      : mixer_(mixer), tokens_(tokens), layout_(sparse_layout(mixer, tokens)) {}

  const SparseLayout& layout() const { return layout_; }

  /// (B, H, N, d) -> (B, H, groups, stride, d), zeros where there is no token
  torch::Tensor grouped(const torch::Tensor& x) const {
    const auto filled = torch::constant_pad_nd(x, {0, 0, 0, layout_.padded - tokens_});
    return filled.view({x.size(0), x.size(1), layout_.groups, mixer_.stride, x.size(3)});
  }

  /// The tokens of a group and of those around it.
  ///
  /// (B, H, groups, stride, d) -> (B, H, groups, near, d)
  torch::Tensor near(const torch::Tensor& x) const {
    if (layout_.before + layout_.after == 0) return x;
    const auto filled = torch::constant_pad_nd(x, {0, 0, 0, 0, layout_.before, layout_.after});
    std::vector<torch::Tensor> around;
    for (int64_t i = 0; i <= layout_.before + layout_.after; ++i) {
      around.push_back(filled.narrow(2, i, layout_.groups));
    }
    return torch::cat(around, 3);
  }

  /// Queries, or strided keys: those with the same place in their groups together. Fixed keys: the
  /// last ones of all groups.
  ///
  /// (B, H, groups, stride, d) -> (B, H, stride, groups, d), or (B, H, 1, groups columns, d)
  torch::Tensor far_queries(const torch::Tensor& x) const {
    return is_strided() ? x.transpose(2, 3) : x.flatten(2, 3).unsqueeze(2);
  }
  torch::Tensor far_keys(const torch::Tensor& x) const {
    if (is_strided()) return x.transpose(2, 3);
    return x.narrow(3, mixer_.stride - mixer_.columns, mixer_.columns).flatten(2, 3).unsqueeze(2);
  }

  /// Back from the order of far queries: (B, H, .., .., X) -> (B, H, padded, X), and to it.
  torch::Tensor from_far(const torch::Tensor& x) const {
    return (is_strided() ? x.transpose(2, 3) : x).flatten(2, 3);
  }
  torch::Tensor to_far(const torch::Tensor& x) const {
    if (!is_strided()) return x.unsqueeze(2);
    return x.view({x.size(0), x.size(1), layout_.groups, mixer_.stride, -1}).transpose(2, 3);
  }

 private:
  bool is_strided() const { return mixer_.kind == MixerKind::kSparseStrided; }

  const Mixer& mixer_;
  int64_t tokens_;
  SparseLayout layout_;
};

}  // namespace

torch::Tensor sparse_attention(const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, const Mixer& mixer, double scale,
                               const Context& context) {
  const int64_t tokens = q.size(2);
  const Groups groups(mixer, tokens);
  const SparseLayout& layout = groups.layout();
  const auto queries = groups.grouped(q * scale);
  const auto keys = groups.grouped(k);
  const auto values = groups.grouped(v);
  std::vector<torch::Tensor> parts;
  if (layout.near > 0) {
    parts.push_back(torch::matmul(queries, groups.near(keys).transpose(-2, -1)).flatten(2, 3));
  }
  if (layout.far > 0) {
    parts.push_back(groups.from_far(
        torch::matmul(groups.far_queries(queries), groups.far_keys(keys).transpose(-2, -1))));
  }
  const auto scores = (parts.size() == 1 ? parts[0] : torch::cat(parts, 3));  // (B, H, padded, ..)
  const auto seen = torch::softmax(scores + mask_of(q, mixer, context).to(scores.scalar_type()), -1)
                        .to(v.scalar_type());
  torch::Tensor mixed;
  if (layout.near > 0) {
    const auto near = seen.narrow(3, 0, layout.near).unflatten(2, {layout.groups, mixer.stride});
    mixed = torch::matmul(near, groups.near(values)).flatten(2, 3);
  }
  if (layout.far > 0) {
    const auto far = groups.from_far(
        torch::matmul(groups.to_far(seen.narrow(3, layout.near, layout.far).contiguous()),
                      groups.far_keys(values)));
    mixed = mixed.defined() ? mixed + far : far;
  }
  return mixed.narrow(2, 0, tokens);
}

}  // namespace adjoin::nn
