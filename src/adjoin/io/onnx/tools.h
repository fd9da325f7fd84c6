#pragma once

// What the writers of ops share: the graph, and the tensors of the network by name.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "adjoin/io/onnx/graph.h"
#include "adjoin/io/onnx/ops.h"
#include "adjoin/spec/tensors.h"

namespace adjoin::io {

/// In reshapes: keep this axis, the batch.
inline constexpr int64_t kBatch = 0;

class OnnxTools {
 public:
  OnnxTools(OnnxGraph& graph, const ModelSpec& spec, const TensorValues& values)
      : graph_(graph), values_(values) {
    for (const TensorInfo& info : tensors(spec)) shapes_[info.name] = info.shape();
  }

  OnnxGraph& graph() { return graph_; }
  std::vector<float> values(const std::string& name) const { return values_(name); }
  const std::vector<int64_t>& shape(const std::string& name) const { return shapes_.at(name); }

  std::string tensor(const std::string& name) {
    return graph_.constant(name, shapes_.at(name), values_(name));
  }

  /// A constant that several ops share, made at its first use.
  std::string shared(const std::string& key, const std::vector<int64_t>& shape,
                     const std::function<std::vector<float>()>& make) {
    const auto [found, is_new] = shared_.try_emplace(key, key);
    if (is_new) graph_.constant(key, shape, make());
    return found->second;
  }

  /// A matrix (out, in) as (in, out).
  std::string transposed(const std::string& name);

  std::string slice(const std::string& x, int64_t begin, int64_t end, int64_t axis);
  std::string concat(const std::vector<std::string>& inputs, int64_t axis);

  /// Keeps the axis, of size 1.
  std::string reduce_sum(const std::string& x, int64_t axis);

  /// Zeros before and after, for each axis of `rank`.
  std::string pad(const std::string& x, int64_t rank, int64_t axis, int64_t before, int64_t after);

  /// The rows of axis 1 in another order.
  std::string in_order(const std::string& x, const std::vector<int32_t>& rows);

 private:
  OnnxGraph& graph_;
  const TensorValues& values_;
  std::map<std::string, std::vector<int64_t>> shapes_;
  std::map<std::string, std::string> shared_;
};

}  // namespace adjoin::io
