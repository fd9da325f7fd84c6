// What each op of a spec is in ONNX. A new kind of op that is not written here does not compile.
#include "adjoin/io/onnx/ops.h"

#include <cmath>
#include <numbers>

#include "adjoin/io/onnx/mixers.h"

namespace adjoin::io {
namespace {

class OpWriter {
 public:
  OpWriter(OnnxGraph& graph, const ModelSpec& spec, const TensorValues& values)
      : graph_(graph), tools_(graph, spec, values) {}

  std::string write(const Op& op, const std::vector<std::string>& inputs) {
    graph_.begin(op.name);
    return std::visit([&](const auto& detail) { return write(detail, op, inputs); }, op.detail);
  }

 private:
  using Inputs = std::vector<std::string>;

  std::string write(const PatchEmbedOp& detail, const Op& op, const Inputs& inputs) {
    const std::vector<int64_t> sides = {detail.patch, detail.patch};
    const auto grid = graph_.node("Conv", {inputs[0], tensor(detail.weight), tensor(detail.bias)},
                                  {{"kernel_shape", sides}, {"strides", sides}});  // (B, E, G, G)
    return graph_.transpose(graph_.reshape(grid, {kBatch, op.shape[1], op.shape[0]}), {0, 2, 1});
  }

  /// Every value is picked by its place in the padded image: no operator of opset 17 does this.
  std::string write(const UnfoldOp& detail, const Op& op, const Inputs& inputs) {
    const auto [kernel, stride, padding, channels, grid, is_from_tokens] = detail;
    std::string image = inputs[0];
    if (is_from_tokens) {
      image = graph_.reshape(graph_.transpose(image, {0, 2, 1}), {kBatch, channels, grid, grid});
    }
    if (padding > 0) {
      const std::vector<int64_t> sides = {0, 0, padding, padding, 0, 0, padding, padding};
      image = graph_.node("Pad", {image, graph_.constant(sides)});
    }
    const int64_t padded = grid + 2 * padding;
    const int64_t steps = (padded - kernel) / stride + 1;
    std::vector<int64_t> places;
    for (int64_t token = 0; token < steps * steps; ++token) {
      for (int64_t k = 0; k < kernel * kernel; ++k) {
        const int64_t row = token / steps * stride + k / kernel;
        places.push_back(row * padded + token % steps * stride + k % kernel);
      }
    }
    const auto flat = graph_.reshape(image, {kBatch, channels, padded * padded});
    const auto picked =
        graph_.node("Gather", {flat, graph_.constant(places)}, {{"axis", int64_t{2}}});
    const auto tokens = graph_.reshape(picked, {kBatch, channels, op.shape[0], kernel * kernel});
    return graph_.reshape(graph_.transpose(tokens, {0, 2, 1, 3}),
                          {kBatch, op.shape[0], op.shape[1]});
  }

  std::string write(const LinearOp& detail, const Op& /*op*/, const Inputs& inputs) {
    const auto product = graph_.node("MatMul", {inputs[0], tools_.transposed(detail.weight)});
    return detail.bias.empty() ? product : graph_.node("Add", {product, tensor(detail.bias)});
  }

  std::string write(const NormOp& detail, const Op& /*op*/, const Inputs& inputs) {
    return graph_.node("LayerNormalization",
                       {inputs[0], tensor(detail.weight), tensor(detail.bias)},
                       {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(detail.eps)}});
  }

  std::string write(const AttentionOp& detail, const Op& op, const Inputs& inputs) {
    return write_attention(tools_, detail, op.shape[0], inputs[0]);
  }

  std::string write(const LinformerOp& detail, const Op& op, const Inputs& inputs) {
    return write_linformer(tools_, detail, op.shape[0], inputs[0]);
  }

  std::string write(const SparseOp& detail, const Op& op, const Inputs& inputs) {
    return write_sparse(tools_, detail, op.shape[0], inputs[0]);
  }

  std::string write(const LshOp& detail, const Op& op, const Inputs& inputs) {
    return write_lsh(tools_, detail, op.shape[0], inputs[0]);
  }

  std::string write(const LinearMixerOp& detail, const Op& op, const Inputs& inputs) {
    return write_linear(tools_, detail, op.shape[0], inputs[0]);
  }

  /// The matrix is put together from the blocks' first columns in the graph, once when it is
  /// loaded: the file holds no more than the model's own.
  std::string write(const CirculantOp& detail, const Op& /*op*/, const Inputs& inputs) {
    const int64_t size = detail.width / detail.blocks;
    std::vector<int64_t> from;
    for (int64_t r = 0; r < size; ++r) {
      for (int64_t s = 0; s < size; ++s) from.push_back((r - s + size) % size);
    }
    const auto entries = graph_.node("Gather", {tensor(detail.weight), graph_.constant(from)},
                                     {{"axis", int64_t{3}}});
    const auto blocks = graph_.reshape(
        entries, {detail.branches, detail.blocks, detail.blocks, size, size});  // t, i, j, r, s
    const auto matrix = graph_.reshape(graph_.transpose(blocks, {2, 4, 0, 1, 3}),
                                       {detail.width, detail.branches * detail.width});
    return graph_.node("Add", {graph_.node("MatMul", {inputs[0], matrix}), tensor(detail.bias)});
  }

  std::string write(const FoldOp& detail, const Op& op, const Inputs& inputs) {
    const auto apart = graph_.reshape(inputs[0], {kBatch, op.shape[0], detail.parts, op.shape[1]});
    return graph_.reshape(tools_.reduce_sum(apart, 2), {kBatch, op.shape[0], op.shape[1]});
  }

  std::string write(const ScaleOp& detail, const Op& /*op*/, const Inputs& inputs) {
    return graph_.node("Mul", {inputs[0], graph_.constant(detail.factor)});
  }

  std::string write(const PerformerOp& detail, const Op& /*op*/, const Inputs& inputs) {
    const auto kqv = graph_.node("Split", {inputs[0]}, {{"axis", int64_t{2}}}, 3);
    const auto features = tools_.transposed(detail.weight);  // (d, m)
    const auto half = graph_.constant(0.5);
    const auto share = graph_.constant(1 / std::sqrt(static_cast<double>(detail.features)));
    const auto last = graph_.constant(std::vector<int64_t>{2});
    const auto positive = [&](const std::string& x) {
      const auto squares = graph_.node("ReduceSum", {graph_.node("Mul", {x, x}), last});
      const auto exponent = graph_.node(
          "Sub", {graph_.node("MatMul", {x, features}), graph_.node("Mul", {squares, half})});
      return graph_.node("Mul", {graph_.node("Exp", {exponent}), share});
    };
    const auto q = positive(kqv[1]);
    const auto k = graph_.transpose(positive(kqv[0]), {0, 2, 1});  // (B, m, N)
    const auto all_k = graph_.node("ReduceSum", {k, last});        // (B, m, 1)
    const auto norm =
        graph_.node("Add", {graph_.node("MatMul", {q, all_k}), graph_.constant(detail.eps)});
    const auto mixed = graph_.node("MatMul", {q, graph_.node("MatMul", {k, kqv[2]})});
    return graph_.node("Div", {mixed, norm});
  }

  std::string write(const SliceOp& detail, const Op& /*op*/, const Inputs& inputs) {
    return tools_.slice(inputs[0], detail.begin, detail.end, 2);
  }

  /// In the form that runtimes recognise and fuse.
  std::string write(const GeluOp& /*detail*/, const Op& /*op*/, const Inputs& inputs) {
    const auto scaled = graph_.node("Div", {inputs[0], graph_.constant(std::numbers::sqrt2)});
    const auto above = graph_.node("Add", {graph_.node("Erf", {scaled}), graph_.constant(1.0)});
    return graph_.node("Mul", {graph_.node("Mul", {inputs[0], above}), graph_.constant(0.5)});
  }

  std::string write(const AddOp& /*detail*/, const Op& /*op*/, const Inputs& inputs) {
    return sum(inputs);
  }

  std::string sum(const Inputs& inputs) {
    std::string total = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) total = graph_.node("Add", {total, inputs[i]});
    return total;
  }

  std::string write(const AddTensorOp& detail, const Op& /*op*/, const Inputs& inputs) {
    return graph_.node("Add", {inputs[0], tensor(detail.tensor)});
  }

  std::string write(const PrependOp& detail, const Op& op, const Inputs& inputs) {
    const auto shape = graph_.node("Shape", {inputs[0]});
    const auto zero = graph_.constant(std::vector<int64_t>{0});
    const auto batch = graph_.node("Gather", {shape, zero}, {{"axis", int64_t{0}}});
    const auto rest = graph_.constant(std::vector<int64_t>{1, op.shape[1]});
    const auto wanted = graph_.node("Concat", {batch, rest}, {{"axis", int64_t{0}}});
    Inputs tokens;
    for (const std::string& name : detail.tokens) {
      tokens.push_back(graph_.node("Expand", {tensor(name), wanted}));
    }
    tokens.push_back(inputs[0]);
    return graph_.node("Concat", tokens, {{"axis", int64_t{1}}});
  }

  std::string write(const MergeOp& detail, const Op& op, const Inputs& inputs) {
    const int64_t half = detail.grid / 2;
    const int64_t channels = op.shape[1] / 4;
    const auto cut = graph_.reshape(inputs[0], {kBatch, half, 2, half, 2, channels});
    // The column offset before the row offset.
    return graph_.reshape(graph_.transpose(cut, {0, 1, 3, 4, 2, 5}),
                          {kBatch, op.shape[0], op.shape[1]});
  }

  std::string write(const PoolOp& detail, const Op& /*op*/, const Inputs& inputs) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < detail.count; ++i) places.push_back(detail.first + i);
    const auto chosen =
        graph_.node("Gather", {inputs[0], graph_.constant(places)}, {{"axis", int64_t{1}}});
    return graph_.node("ReduceMean", {chosen},
                       {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  }

  std::string write(const AverageOp& /*detail*/, const Op& /*op*/, const Inputs& inputs) {
    const auto count = static_cast<double>(inputs.size());
    return graph_.node("Mul", {sum(inputs), graph_.constant(1 / count)});
  }

  std::string tensor(const std::string& name) { return tools_.tensor(name); }

  OnnxGraph& graph_;
  OnnxTools tools_;
};

}  // namespace

std::string write_ops(OnnxGraph& graph, const ModelSpec& spec, const TensorValues& values,
                      const std::string& images) {
  OpWriter writer(graph, spec, values);
  std::vector<std::string> outputs;
  for (const Op& op : ops(spec)) {
    std::vector<std::string> inputs;
    for (const int64_t input : op.inputs) {
      inputs.push_back(input == kImage ? images : outputs.at(static_cast<size_t>(input)));
    }
    outputs.push_back(writer.write(op, inputs));
  }
  return outputs.back();
}

}  // namespace adjoin::io
