// What each op of a spec is in ONNX. A new kind of op that is not written here does not compile.
#include "adjoin/io/onnx/ops.h"

#include <cmath>
#include <map>
#include <numbers>

#include "adjoin/spec/relative.h"
#include "adjoin/spec/tensors.h"
#include "adjoin/spec/window.h"

namespace adjoin::io {
namespace {

/// In reshapes: keep this axis, the batch.
constexpr int64_t kBatch = 0;

class OpWriter {
 public:
  OpWriter(OnnxGraph& graph, const ModelSpec& spec, const TensorValues& values)
      : graph_(graph), values_(values) {
    for (const TensorInfo& info : tensors(spec)) shapes_[info.name] = info.shape();
  }

  std::string write(const Op& op, const std::vector<std::string>& inputs) {
    graph_.begin(op.name);
    return std::visit([&](const auto& detail) { return write(detail, op, inputs); }, op.detail);
  }

 private:
  using Inputs = std::vector<std::string>;

  std::string tensor(const std::string& name) {
    return graph_.constant(name, shapes_.at(name), values_(name));
  }

  /// A matrix (out, in) as (in, out).
  std::string transposed(const std::string& name) {
    const int64_t rows = shapes_.at(name).at(0);
    const int64_t columns = shapes_.at(name).at(1);
    const std::vector<float> from = values_(name);
    std::vector<float> to(from.size());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        to[static_cast<size_t>(j * rows + i)] = from[static_cast<size_t>(i * columns + j)];
      }
    }
    return graph_.constant(name, {columns, rows}, to);
  }

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
    const auto product = graph_.node("MatMul", {inputs[0], transposed(detail.weight)});
    return detail.bias.empty() ? product : graph_.node("Add", {product, tensor(detail.bias)});
  }

  std::string write(const NormOp& detail, const Op& /*op*/, const Inputs& inputs) {
    return graph_.node("LayerNormalization",
                       {inputs[0], tensor(detail.weight), tensor(detail.bias)},
                       {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(detail.eps)}});
  }

  std::string write(const AttentionOp& detail, const Op& op, const Inputs& inputs) {
    using Axes = std::vector<int64_t>;
    const int64_t heads = detail.heads;
    const int64_t dim = detail.head_dim;
    const int64_t count = op.shape[0];
    const bool has_windows = detail.window.has_value();
    const Axes apart =
        has_windows ? Axes{kBatch, detail.window->count(), detail.window->tokens(), heads, dim}
                    : Axes{kBatch, count, heads, dim};
    const Axes by_head = has_windows ? Axes{0, 1, 3, 2, 4} : Axes{0, 2, 1, 3};
    const Axes by_head_flipped = has_windows ? Axes{0, 1, 3, 4, 2} : Axes{0, 2, 3, 1};
    const auto x = has_windows ? in_order(inputs[0], window_tokens(*detail.window)) : inputs[0];
    const auto parts = graph_.node("Split", {x}, {{"axis", int64_t{2}}}, 3);
    const auto split = [&](const std::string& part, const Axes& order) {
      return graph_.transpose(graph_.reshape(part, apart), order);
    };
    const auto q = graph_.node("Mul", {split(parts[0], by_head), graph_.constant(detail.scale)});
    auto scores = graph_.node("MatMul", {q, split(parts[1], by_head_flipped)});
    if (has_windows) scores = graph_.node("Add", {scores, window_bias(detail)});
    if (!detail.tables.empty()) scores = with_relative_keys(detail, scores, q, count);
    const auto weights = graph_.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
    auto mixed = graph_.node("MatMul", {weights, split(parts[2], by_head)});
    if (!detail.tables.empty()) mixed = with_relative_values(detail, mixed, weights, count);
    const auto out = graph_.reshape(graph_.transpose(mixed, by_head), {kBatch, count, heads * dim});
    return has_windows ? in_order(out, window_places(*detail.window)) : out;
  }

  std::string slice(const std::string& x, int64_t begin, int64_t end, int64_t axis) {
    const auto one = [&](int64_t value) { return graph_.constant(std::vector<int64_t>{value}); };
    return graph_.node("Slice", {x, one(begin), one(end), one(axis)});
  }

  std::string concat(const Inputs& inputs, int64_t axis) {
    return graph_.node("Concat", inputs, {{"axis", axis}});
  }

  std::string reduce_sum(const std::string& x, int64_t axis) {
    return graph_.node("ReduceSum", {x, graph_.constant(std::vector<int64_t>{axis})});
  }

  /// x (B, H, s, s, K) times the vectors of a table for its place along rows or columns of the
  /// grid: (B, H, s, s, s + 1) of K = d where positions are asked, (B, H, s, s, d) of K = s + 1
  /// where they are added up.
  std::string with_places(const AttentionOp& detail, const std::string& x, size_t which,
                          int64_t s) {
    const int64_t dim = detail.head_dim;
    const std::vector<int64_t> rows = relative_table_rows(s, detail.distance);
    const std::vector<float> table = values_(detail.tables[which]);
    const bool is_asked = which < 2;
    std::vector<float> vectors(rows.size() * static_cast<size_t>(dim));
    for (int64_t i = 0; i < s; ++i) {
      for (int64_t k = 0; k <= s; ++k) {
        for (int64_t d = 0; d < dim; ++d) {
          const int64_t place = is_asked ? d * (s + 1) + k : k * dim + d;
          vectors[static_cast<size_t>(i * (s + 1) * dim + place)] =
              table[static_cast<size_t>(rows[static_cast<size_t>(i * (s + 1) + k)] * dim + d)];
        }
      }
    }
    const std::vector<int64_t> shape =
        is_asked ? std::vector<int64_t>{s, dim, s + 1} : std::vector<int64_t>{s, s + 1, dim};
    const auto factor = graph_.constant(detail.tables[which], shape, vectors);
    const bool is_by_row = which % 2 == 0;
    if (is_by_row) return graph_.node("MatMul", {x, factor});
    const std::vector<int64_t> swapped = {0, 1, 3, 2, 4};
    return graph_.transpose(graph_.node("MatMul", {graph_.transpose(x, swapped), factor}), swapped);
  }

  /// Scores (B, H, N, N) with what patches ask of keys' positions; q is scaled.
  std::string with_relative_keys(const AttentionOp& detail, const std::string& scores,
                                 const std::string& q, int64_t tokens) {
    const TokenGrid grid = token_grid(tokens);
    const int64_t s = grid.side;
    const auto queries = graph_.reshape(slice(q, grid.classes, tokens, 2),
                                        {kBatch, detail.heads, s, s, detail.head_dim});
    const auto by_row = with_places(detail, queries, 0, s);
    const auto by_column = with_places(detail, queries, 1, s);
    const auto of_patches = graph_.node(
        "Add", {graph_.reshape(slice(by_row, 0, s, 4), {kBatch, detail.heads, s * s, s, 1}),
                graph_.reshape(slice(by_column, 0, s, 4), {kBatch, detail.heads, s * s, 1, s})});
    const auto of_class = graph_.reshape(
        graph_.node("Add", {slice(by_row, s, s + 1, 4), slice(by_column, s, s + 1, 4)}),
        {kBatch, detail.heads, s * s, 1});
    Inputs bias(static_cast<size_t>(grid.classes), of_class);
    bias.push_back(graph_.reshape(of_patches, {kBatch, detail.heads, s * s, s * s}));
    const auto patches =
        graph_.node("Add", {slice(scores, grid.classes, tokens, 2), concat(bias, 3)});
    return concat({slice(scores, 0, grid.classes, 2), patches}, 2);
  }

  /// What was seen (B, H, N, d) with the positions of the values, by the weights (B, H, N, N).
  std::string with_relative_values(const AttentionOp& detail, const std::string& mixed,
                                   const std::string& weights, int64_t tokens) {
    const TokenGrid grid = token_grid(tokens);
    const int64_t s = grid.side;
    const auto of_patches = slice(weights, grid.classes, tokens, 2);
    const auto seen = graph_.reshape(slice(of_patches, grid.classes, tokens, 3),
                                     {kBatch, detail.heads, s * s, s, s});
    const auto of_class = reduce_sum(slice(of_patches, 0, grid.classes, 3), 3);
    const auto along = [&](int64_t axis, size_t which) {
      const auto sums = graph_.reshape(reduce_sum(seen, axis), {kBatch, detail.heads, s * s, s});
      return with_places(
          detail, graph_.reshape(concat({sums, of_class}, 3), {kBatch, detail.heads, s, s, s + 1}),
          which, s);
    };
    const auto values = graph_.reshape(graph_.node("Add", {along(4, 2), along(3, 3)}),
                                       {kBatch, detail.heads, s * s, detail.head_dim});
    const auto patches = graph_.node("Add", {slice(mixed, grid.classes, tokens, 2), values});
    // A class token sees all values with the vectors of row 0, whose weights add up to one.
    const std::vector<float> rows = values_(detail.tables[2]);
    const std::vector<float> columns = values_(detail.tables[3]);
    std::vector<float> own(static_cast<size_t>(detail.head_dim));
    for (size_t i = 0; i < own.size(); ++i) own[i] = rows[i] + columns[i];
    const auto classes =
        graph_.node("Add", {slice(mixed, 0, grid.classes, 2),
                            graph_.constant(detail.tables[2] + ".class", {detail.head_dim}, own)});
    return concat({classes, patches}, 2);
  }

  std::string in_order(const std::string& x, const std::vector<int32_t>& rows) {
    return graph_.node("Gather",
                       {x, graph_.constant(std::vector<int64_t>(rows.begin(), rows.end()))},
                       {{"axis", int64_t{1}}});
  }

  /// Relative position bias and shift mask in one: (windows or 1, heads, M^2, M^2).
  std::string window_bias(const AttentionOp& detail) {
    const Window& window = *detail.window;
    const std::vector<float> table = values_(detail.bias_table);
    const std::vector<int64_t> rows = relative_position_rows(window.size);
    const int64_t pairs = window.tokens() * window.tokens();
    const bool is_shifted = window.shift > 0;
    const int64_t windows = is_shifted ? window.count() : 1;
    const std::vector<bool> apart = is_shifted ? strangers(window) : std::vector<bool>(rows.size());
    std::vector<float> bias;
    bias.reserve(static_cast<size_t>(windows * detail.heads * pairs));
    for (int64_t w = 0; w < windows; ++w) {
      for (int64_t head = 0; head < detail.heads; ++head) {
        for (int64_t pair = 0; pair < pairs; ++pair) {
          const float own =
              table[static_cast<size_t>(rows[static_cast<size_t>(pair)] * detail.heads + head)];
          const bool is_apart = apart[static_cast<size_t>(w * pairs + pair)];
          bias.push_back(own + (is_apart ? static_cast<float>(kStrangerScore) : 0));
        }
      }
    }
    return graph_.constant(detail.bias_table,
                           {windows, detail.heads, window.tokens(), window.tokens()}, bias);
  }

  std::string write(const PerformerOp& detail, const Op& /*op*/, const Inputs& inputs) {
    const auto kqv = graph_.node("Split", {inputs[0]}, {{"axis", int64_t{2}}}, 3);
    const auto features = transposed(detail.weight);  // (d, m)
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
    return slice(inputs[0], detail.begin, detail.end, 2);
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

  OnnxGraph& graph_;
  const TensorValues& values_;
  std::map<std::string, std::vector<int64_t>> shapes_;
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
