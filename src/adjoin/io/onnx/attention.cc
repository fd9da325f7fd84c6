// Softmax attention: of all tokens, inside windows, or with relative positions.
#include "adjoin/io/onnx/mixers.h"
#include "adjoin/spec/relative.h"
#include "adjoin/spec/window.h"

namespace adjoin::io {
namespace {

class AttentionWriter {
 public:
  AttentionWriter(OnnxTools& tools, const AttentionOp& detail, int64_t tokens)
      : tools_(tools), graph_(tools.graph()), detail_(detail), tokens_(tokens) {}

  std::string write(const std::string& input) {
    using Axes = std::vector<int64_t>;
    const int64_t heads = detail_.heads;
    const int64_t dim = detail_.head_dim;
    const int64_t count = tokens_;
    const bool has_windows = detail_.window.has_value();
    const Axes apart =
        has_windows ? Axes{kBatch, detail_.window->count(), detail_.window->tokens(), heads, dim}
                    : Axes{kBatch, count, heads, dim};
    const Axes by_head = has_windows ? Axes{0, 1, 3, 2, 4} : Axes{0, 2, 1, 3};
    const Axes by_head_flipped = has_windows ? Axes{0, 1, 3, 4, 2} : Axes{0, 2, 3, 1};
    const auto x = has_windows ? tools_.in_order(input, window_tokens(*detail_.window)) : input;
    const auto parts = graph_.node("Split", {x}, {{"axis", int64_t{2}}}, 3);
    const auto split = [&](const std::string& part, const Axes& order) {
      return graph_.transpose(graph_.reshape(part, apart), order);
    };
    const auto q = graph_.node("Mul", {split(parts[0], by_head), graph_.constant(detail_.scale)});
    auto scores = graph_.node("MatMul", {q, split(parts[1], by_head_flipped)});
    if (has_windows) scores = graph_.node("Add", {scores, window_bias()});
    if (!detail_.tables.empty()) scores = with_relative_keys(scores, q);
    const auto weights = graph_.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
    auto mixed = graph_.node("MatMul", {weights, split(parts[2], by_head)});
    if (!detail_.tables.empty()) mixed = with_relative_values(mixed, weights);
    const auto out = graph_.reshape(graph_.transpose(mixed, by_head), {kBatch, count, heads * dim});
    return has_windows ? tools_.in_order(out, window_places(*detail_.window)) : out;
  }

 private:
  /// x (B, H, s, s, K) times the vectors of a table for its place along rows or columns of the
  /// grid: (B, H, s, s, s + 1) of K = d where positions are asked, (B, H, s, s, d) of K = s + 1
  /// where they are added up.
  std::string with_places(const std::string& x, size_t which, int64_t s) {
    const int64_t dim = detail_.head_dim;
    const std::vector<int64_t> rows = relative_table_rows(s, detail_.distance);
    const std::vector<float> table = tools_.values(detail_.tables[which]);
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
    const auto factor = graph_.constant(detail_.tables[which], shape, vectors);
    const bool is_by_row = which % 2 == 0;
    if (is_by_row) return graph_.node("MatMul", {x, factor});
    const std::vector<int64_t> swapped = {0, 1, 3, 2, 4};
    return graph_.transpose(graph_.node("MatMul", {graph_.transpose(x, swapped), factor}), swapped);
  }

  /// Scores (B, H, N, N) with what patches ask of keys' positions; q is scaled.
  std::string with_relative_keys(const std::string& scores, const std::string& q) {
    const TokenGrid grid = token_grid(tokens_);
    const int64_t s = grid.side;
    const auto queries = graph_.reshape(tools_.slice(q, grid.classes, tokens_, 2),
                                        {kBatch, detail_.heads, s, s, detail_.head_dim});
    const auto by_row = with_places(queries, 0, s);
    const auto by_column = with_places(queries, 1, s);
    const auto of_patches = graph_.node(
        "Add",
        {graph_.reshape(tools_.slice(by_row, 0, s, 4), {kBatch, detail_.heads, s * s, s, 1}),
         graph_.reshape(tools_.slice(by_column, 0, s, 4), {kBatch, detail_.heads, s * s, 1, s})});
    const auto of_class = graph_.reshape(graph_.node("Add", {tools_.slice(by_row, s, s + 1, 4),
                                                             tools_.slice(by_column, s, s + 1, 4)}),
                                         {kBatch, detail_.heads, s * s, 1});
    std::vector<std::string> bias(static_cast<size_t>(grid.classes), of_class);
    bias.push_back(graph_.reshape(of_patches, {kBatch, detail_.heads, s * s, s * s}));
    const auto patches = graph_.node(
        "Add", {tools_.slice(scores, grid.classes, tokens_, 2), tools_.concat(bias, 3)});
    return tools_.concat({tools_.slice(scores, 0, grid.classes, 2), patches}, 2);
  }

  /// What was seen (B, H, N, d) with the positions of the values, by the weights (B, H, N, N).
  std::string with_relative_values(const std::string& mixed, const std::string& weights) {
    const TokenGrid grid = token_grid(tokens_);
    const int64_t s = grid.side;
    const auto of_patches = tools_.slice(weights, grid.classes, tokens_, 2);
    const auto seen = graph_.reshape(tools_.slice(of_patches, grid.classes, tokens_, 3),
                                     {kBatch, detail_.heads, s * s, s, s});
    const auto of_class = tools_.reduce_sum(tools_.slice(of_patches, 0, grid.classes, 3), 3);
    const auto along = [&](int64_t axis, size_t which) {
      const auto sums =
          graph_.reshape(tools_.reduce_sum(seen, axis), {kBatch, detail_.heads, s * s, s});
      return with_places(

          graph_.reshape(tools_.concat({sums, of_class}, 3), {kBatch, detail_.heads, s, s, s + 1}),
          which, s);
    };
    const auto values = graph_.reshape(graph_.node("Add", {along(4, 2), along(3, 3)}),
                                       {kBatch, detail_.heads, s * s, detail_.head_dim});
    const auto patches =
        graph_.node("Add", {tools_.slice(mixed, grid.classes, tokens_, 2), values});
    // A class token sees all values with the vectors of row 0, whose weights add up to one.
    const std::vector<float> rows = tools_.values(detail_.tables[2]);
    const std::vector<float> columns = tools_.values(detail_.tables[3]);
    std::vector<float> own(static_cast<size_t>(detail_.head_dim));
    for (size_t i = 0; i < own.size(); ++i) own[i] = rows[i] + columns[i];
    const auto classes = graph_.node(
        "Add", {tools_.slice(mixed, 0, grid.classes, 2),
                graph_.constant(detail_.tables[2] + ".class", {detail_.head_dim}, own)});
    return tools_.concat({classes, patches}, 2);
  }

  /// Relative position bias and shift mask in one: (windows or 1, heads, M^2, M^2).
  std::string window_bias() {
    const Window& window = *detail_.window;
    const std::vector<float> table = tools_.values(detail_.bias_table);
    const std::vector<int64_t> rows = relative_position_rows(window.size);
    const int64_t pairs = window.tokens() * window.tokens();
    const bool is_shifted = window.shift > 0;
    const int64_t windows = is_shifted ? window.count() : 1;
    const std::vector<bool> apart = is_shifted ? strangers(window) : std::vector<bool>(rows.size());
    std::vector<float> bias;
    bias.reserve(static_cast<size_t>(windows * detail_.heads * pairs));
    for (int64_t w = 0; w < windows; ++w) {
      for (int64_t head = 0; head < detail_.heads; ++head) {
        for (int64_t pair = 0; pair < pairs; ++pair) {
          const float own =
              table[static_cast<size_t>(rows[static_cast<size_t>(pair)] * detail_.heads + head)];
          const bool is_apart = apart[static_cast<size_t>(w * pairs + pair)];
          bias.push_back(own + (is_apart ? static_cast<float>(kStrangerScore) : 0));
        }
      }
    }
    return graph_.constant(detail_.bias_table,
                           {windows, detail_.heads, window.tokens(), window.tokens()}, bias);
  }

  OnnxTools& tools_;
  OnnxGraph& graph_;
  const AttentionOp& detail_;
  int64_t tokens_;
};

}  // namespace

std::string write_attention(OnnxTools& tools, const AttentionOp& op, int64_t tokens,
                            const std::string& input) {
  return AttentionWriter(tools, op, tokens).write(input);
}

}  // namespace adjoin::io
