// Mixers other than softmax attention of all tokens.
#include "adjoin/io/onnx/mixers.h"

#include <limits>

#include "adjoin/spec/sparse.h"
#include "adjoin/spec/window.h"

namespace adjoin::io {
namespace {

using Axes = std::vector<int64_t>;

/// Rows of all heads cut into heads, and put together again.
class HeadsWriter {
 public:
  HeadsWriter(OnnxTools& tools, const Heads& heads, int64_t tokens,
              const std::optional<Window>& window = {})
      : tools_(tools), graph_(tools.graph()), heads_(heads), tokens_(tokens), window_(window) {}

  /// (B, N, parts H d) -> `parts` times (B, H, N, d), or (B, W, H, N, d) inside windows
  std::vector<std::string> split(const std::string& input, int parts) {
    const auto x = window_ ? tools_.in_order(input, window_tokens(*window_)) : input;
    const Axes apart =
        window_ ? Axes{kBatch, window_->count(), window_->tokens(), heads_.heads, heads_.head_dim}
                : Axes{kBatch, tokens_, heads_.heads, heads_.head_dim};
    std::vector<std::string> result = graph_.node("Split", {x}, {{"axis", int64_t{2}}}, parts);
    for (std::string& part : result) {
      part = graph_.transpose(graph_.reshape(part, apart), by_head());
    }
    return result;
  }

  /// The way back.
  std::string join(const std::string& mixed) {
    const auto out = graph_.reshape(graph_.transpose(mixed, by_head()),
                                    {kBatch, tokens_, heads_.heads * heads_.head_dim});
    return window_ ? tools_.in_order(out, window_places(*window_)) : out;
  }

  /// The last two axes swapped, of a value of so many axes.
  std::string flipped(const std::string& x, int64_t rank) {
    Axes order;
    for (int64_t i = 0; i < rank; ++i) order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return graph_.transpose(x, order);
  }

  int64_t rank() const { return window_ ? 5 : 4; }

 private:
  Axes by_head() const { return window_ ? Axes{0, 1, 3, 2, 4} : Axes{0, 2, 1, 3}; }

  OnnxTools& tools_;
  OnnxGraph& graph_;
  Heads heads_;
  int64_t tokens_;
  std::optional<Window> window_;
};

std::string softmax(OnnxGraph& graph, const std::string& x, int64_t axis) {
  return graph.node("Softmax", {x}, {{"axis", axis}});
}

/// A tensor (.., n, k) as (.., k, n).
std::string flipped_tensor(OnnxTools& tools, const std::string& name) {
  Axes shape = tools.shape(name);
  const int64_t n = shape[shape.size() - 2];
  const int64_t k = shape.back();
  std::swap(shape[shape.size() - 2], shape.back());
  const std::vector<float> from = tools.values(name);
  std::vector<float> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t matrix = at / (n * k), row = at / k % n, column = at % k;
    to[static_cast<size_t>((matrix * k + column) * n + row)] = from[i];
  }
  return tools.graph().constant(name, shape, to);
}

/// The blocks of a sparse pattern, as in nn/attention/sparse.cc.
class SparseWriter {
 public:
  SparseWriter(OnnxTools& tools, const SparseOp& op, int64_t tokens)
      : tools_(tools),
        graph_(tools.graph()),
        op_(op),
        tokens_(tokens),
        layout_(sparse_layout(op.mixer, tokens)),
        split_(tools, op.heads, tokens) {}

  std::string write(const std::string& input) {
    const auto parts = split_.split(input, 3);
    const auto q = grouped(graph_.node("Mul", {parts[0], graph_.constant(op_.heads.scale)}));
    const auto k = grouped(parts[1]);
    const auto v = grouped(parts[2]);
    std::vector<std::string> scores;
    if (layout_.near > 0) {
      scores.push_back(rows(graph_.node("MatMul", {q, split_.flipped(near(k), 5)}), layout_.near));
    }
    if (layout_.far > 0) {
      scores.push_back(from_far(
          graph_.node("MatMul", {far_queries(q), split_.flipped(far_keys(k), 5)}), layout_.far));
    }
    const auto all = graph_.node("Add", {tools_.concat(scores, 3), mask()});
    const auto seen = softmax(graph_, all, 3);
    std::vector<std::string> mixed;
    if (layout_.near > 0) {
      const auto weights =
          graph_.reshape(tools_.slice(seen, 0, layout_.near, 3),
                         {kBatch, op_.heads.heads, layout_.groups, op_.mixer.stride, layout_.near});
      mixed.push_back(rows(graph_.node("MatMul", {weights, near(v)}), op_.heads.head_dim));
    }
    if (layout_.far > 0) {
      const auto weights = to_far(tools_.slice(seen, layout_.near, layout_.near + layout_.far, 3));
      mixed.push_back(from_far(graph_.node("MatMul", {weights, far_keys(v)}), op_.heads.head_dim));
    }
    const auto sum = mixed.size() == 1 ? mixed[0] : graph_.node("Add", mixed);
    return split_.join(tools_.slice(sum, 0, tokens_, 2));
  }

 private:
  bool is_strided() const { return op_.mixer.kind == MixerKind::kSparseStrided; }

  std::string grouped(const std::string& x) {
    return graph_.reshape(
        tools_.pad(x, 4, 2, 0, layout_.padded - tokens_),
        {kBatch, op_.heads.heads, layout_.groups, op_.mixer.stride, op_.heads.head_dim});
  }

  /// (B, H, .., .., width) -> (B, H, padded, width)
  std::string rows(const std::string& x, int64_t width) {
    return graph_.reshape(x, {kBatch, op_.heads.heads, layout_.padded, width});
  }

  std::string near(const std::string& x) {
    const auto filled = tools_.pad(x, 5, 2, layout_.before, layout_.after);
    std::vector<std::string> around;
    for (int64_t i = 0; i <= layout_.before + layout_.after; ++i) {
      around.push_back(tools_.slice(filled, i, i + layout_.groups, 2));
    }
    return tools_.concat(around, 3);
  }

  std::string swapped(const std::string& x) { return graph_.transpose(x, {0, 1, 3, 2, 4}); }

  std::string far_queries(const std::string& x) {
    if (is_strided()) return swapped(x);
    return graph_.reshape(x, {kBatch, op_.heads.heads, 1, layout_.padded, op_.heads.head_dim});
  }

  std::string far_keys(const std::string& x) {
    if (is_strided()) return swapped(x);
    const auto last = tools_.slice(x, op_.mixer.stride - op_.mixer.columns, op_.mixer.stride, 3);
    return graph_.reshape(last, {kBatch, op_.heads.heads, 1, layout_.far, op_.heads.head_dim});
  }

  std::string from_far(const std::string& x, int64_t width) {
    return rows(is_strided() ? swapped(x) : x, width);
  }

  std::string to_far(const std::string& x) {
    const int64_t heads = op_.heads.heads;
    if (!is_strided()) return graph_.reshape(x, {kBatch, heads, 1, layout_.padded, layout_.far});
    return swapped(
        graph_.reshape(x, {kBatch, heads, layout_.groups, op_.mixer.stride, layout_.far}));
  }

  std::string mask() {
    const auto scores = [&] {
      std::vector<float> values;
      for (const bool is_seen : sparse_mask(op_.mixer, tokens_)) {
        values.push_back(is_seen ? 0 : -std::numeric_limits<float>::infinity());
      }
      return values;
    };
    const std::string key = fmt::format("mask/{}/{}", tokens_, to_json(op_.mixer).dump());
    return tools_.shared(key, {layout_.padded, layout_.near + layout_.far}, scores);
  }

  OnnxTools& tools_;
  OnnxGraph& graph_;
  const SparseOp& op_;
  int64_t tokens_;
  SparseLayout layout_;
  HeadsWriter split_;
};

/// Tokens sorted by hash, as in nn/attention/lsh.cc.
class LshWriter {
 public:
  LshWriter(OnnxTools& tools, const LshOp& op, int64_t tokens)
      : tools_(tools),
        graph_(tools.graph()),
        op_(op),
        tokens_(tokens),
        chunks_(lsh_chunks(op.mixer, tokens)),
        padded_(chunks_ * op.mixer.chunk),
        split_(tools, op.heads, tokens) {}

  std::string write(const std::string& input) {
    const auto parts = split_.split(input, 2);
    const auto& q = parts[0];
    const auto order = sorted(keys_of(q));
    const auto squares = tools_.reduce_sum(graph_.node("Mul", {q, q}), 3);
    const auto length =
        graph_.node("Sqrt", {graph_.node("Add", {squares, graph_.constant(1e-24)})});
    const auto asks = in_chunks(graph_.node("Mul", {q, graph_.constant(op_.heads.scale)}), order);
    const auto is_asked = with_before(in_chunks(graph_.node("Div", {q, length}), order), 4);
    const int64_t chunk = op_.mixer.chunk;
    const auto places = graph_.reshape(order, lead({chunks_, chunk}));
    const auto asking = graph_.reshape(places, lead({chunks_, chunk, 1}));
    const auto asked = graph_.reshape(with_before(places, 4), lead({chunks_, 1, 2 * chunk}));
    auto hidden =
        graph_.node("GreaterOrEqual", {asked, graph_.constant(std::vector<int64_t>{tokens_})});
    if (op_.mixer.is_causal) {
      hidden = graph_.node("Or", {hidden, graph_.node("Greater", {asked, asking})});
    }
    auto scores = graph_.node("MatMul", {asks, split_.flipped(is_asked, 6)});
    scores = graph_.node(
        "Where", {hidden, graph_.constant(-std::numeric_limits<double>::infinity()), scores});
    scores = graph_.node(
        "Where", {graph_.node("Equal", {asked, asking}), graph_.constant(kSelfScore), scores});
    // ONNX's own ReduceLogSumExp may underflow where a token sees itself alone.
    const auto most =
        graph_.node("ReduceMax", {scores}, {{"axes", Axes{5}}, {"keepdims", int64_t{1}}});
    const auto rest = graph_.node("Exp", {graph_.node("Sub", {scores, most})});
    const auto found = graph_.node("Add", {graph_.node("Log", {tools_.reduce_sum(rest, 5)}), most});
    const auto mixed = graph_.node(
        "MatMul", {softmax(graph_, scores, 5), with_before(in_chunks(parts[1], order), 4)});
    const auto back =
        graph_.reshape(tools_.slice(sorted(order), 0, tokens_, 3), lead({tokens_, 1}));
    const auto share = softmax(graph_, unsorted(found, back, 1), 2);
    const auto sum = tools_.reduce_sum(
        graph_.node("Mul", {share, unsorted(mixed, back, op_.heads.head_dim)}), 2);
    return split_.join(graph_.reshape(sum, {kBatch, op_.heads.heads, tokens_, op_.heads.head_dim}));
  }

 private:
  /// (B, H, rounds, ..)
  Axes lead(const Axes& rest) const {
    Axes shape = {kBatch, op_.heads.heads, op_.mixer.rounds};
    shape.insert(shape.end(), rest.begin(), rest.end());
    return shape;
  }

  /// What tokens are sorted by: their bucket, then their place; no two have the same.
  std::string keys_of(const std::string& q) {
    const int64_t rounds = op_.mixer.rounds;
    const int64_t half = chunks_ / 2;
    const int64_t dim = op_.heads.head_dim;
    const std::vector<float> from = tools_.values(op_.rotations);
    std::vector<float> directions(from.size());
    for (int64_t r = 0; r < rounds; ++r) {
      for (int64_t d = 0; d < dim; ++d) {
        for (int64_t h = 0; h < half; ++h) {
          directions[static_cast<size_t>((d * rounds + r) * half + h)] =
              from[static_cast<size_t>((r * dim + d) * half + h)];
        }
      }
    }
    const auto turned = graph_.reshape(
        graph_.node("MatMul",
                    {q, graph_.constant(op_.rotations, {dim, rounds * half}, directions)}),
        {kBatch, op_.heads.heads, tokens_, rounds, half});
    const auto both = tools_.concat({turned, graph_.node("Neg", {turned})}, 4);
    const auto bucket =
        graph_.node("ArgMax", {both}, {{"axis", int64_t{4}}, {"keepdims", int64_t{0}}});
    Axes places;
    for (int64_t i = 0; i < padded_; ++i) {
      places.push_back(i < tokens_ ? i : chunks_ * padded_ + i);
    }
    const auto scaled = graph_.node(
        "Mul", {graph_.transpose(bucket, {0, 1, 3, 2}), graph_.constant(Axes{padded_})});
    return graph_.node("Add",
                       {tools_.pad(scaled, 4, 3, 0, padded_ - tokens_), graph_.constant(places)});
  }

  /// Places of whole numbers from the least to the greatest.
  std::string sorted(const std::string& keys) {
    return graph_.node("TopK", {keys, graph_.constant(Axes{padded_})},
                       {{"axis", int64_t{-1}}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}},
                       2)[1];
  }

  std::string picked(const std::string& x, const std::string& places, int64_t width) {
    const auto wide = graph_.node("Expand", {places, graph_.constant(Axes{1, 1, 1, 1, width})});
    return graph_.node("GatherElements", {x, wide}, {{"axis", int64_t{3}}});
  }

  /// (B, H, N, d) -> (B, H, rounds, chunks, chunk, d)
  std::string in_chunks(const std::string& x, const std::string& order) {
    const int64_t dim = op_.heads.head_dim;
    const auto filled = graph_.reshape(tools_.pad(x, 4, 2, 0, padded_ - tokens_),
                                       {kBatch, op_.heads.heads, 1, padded_, dim});
    const std::vector<std::string> copies(static_cast<size_t>(op_.mixer.rounds), filled);
    const auto chosen =
        picked(tools_.concat(copies, 2), graph_.reshape(order, lead({padded_, 1})), dim);
    return graph_.reshape(chosen, lead({chunks_, op_.mixer.chunk, dim}));
  }

  /// Every chunk with the one before it, along an axis.
  std::string with_before(const std::string& x, int64_t axis) {
    const auto before = tools_.concat(
        {tools_.slice(x, chunks_ - 1, chunks_, 3), tools_.slice(x, 0, chunks_ - 1, 3)}, 3);
    return tools_.concat({x, before}, axis);
  }

  std::string unsorted(const std::string& x, const std::string& back, int64_t width) {
    return picked(graph_.reshape(x, lead({padded_, width})), back, width);
  }

  OnnxTools& tools_;
  OnnxGraph& graph_;
  const LshOp& op_;
  int64_t tokens_;
  int64_t chunks_;
  int64_t padded_;
  HeadsWriter split_;
};

}  // namespace

std::string write_linformer(OnnxTools& tools, const LinformerOp& op, int64_t tokens,
                            const std::string& input) {
  OnnxGraph& graph = tools.graph();
  HeadsWriter heads(tools, op.heads, tokens, op.window);
  const auto parts = heads.split(input, 3);
  const auto to_keys = flipped_tensor(tools, op.keys);
  const auto to_values = op.values == op.keys ? to_keys : flipped_tensor(tools, op.values);
  const auto keys = graph.node("MatMul", {to_keys, parts[1]});
  const auto values = graph.node("MatMul", {to_values, parts[2]});
  const auto q = graph.node("Mul", {parts[0], graph.constant(op.heads.scale)});
  const auto scores = graph.node("MatMul", {q, heads.flipped(keys, heads.rank())});
  return heads.join(graph.node("MatMul", {softmax(graph, scores, -1), values}));
}

std::string write_sparse(OnnxTools& tools, const SparseOp& op, int64_t tokens,
                         const std::string& input) {
  return SparseWriter(tools, op, tokens).write(input);
}

std::string write_lsh(OnnxTools& tools, const LshOp& op, int64_t tokens, const std::string& input) {
  return LshWriter(tools, op, tokens).write(input);
}

std::string write_linear(OnnxTools& tools, const LinearMixerOp& op, int64_t tokens,
                         const std::string& input) {
  OnnxGraph& graph = tools.graph();
  HeadsWriter heads(tools, op.heads, tokens, op.window);
  const auto parts = heads.split(input, 3);
  const auto feature = [&](const std::string& x) {
    return graph.node("Add", {graph.node("Elu", {x}), graph.constant(1.0)});
  };
  const auto divided = [&](const std::string& mixed, const std::string& norm) {
    return graph.node("Div", {mixed, graph.node("Add", {norm, graph.constant(kLinearEps)})});
  };
  auto q = feature(parts[0]), k = feature(parts[1]), v = parts[2];
  if (!op.mixer.is_causal) {
    const int64_t rank = heads.rank();
    const auto sums = graph.node("MatMul", {heads.flipped(k, rank), v});
    const auto all = heads.flipped(tools.reduce_sum(k, rank - 2), rank);  // (.., d, 1)
    return heads.join(divided(graph.node("MatMul", {q, sums}), graph.node("MatMul", {q, all})));
  }
  const int64_t groups = linear_groups(tokens);
  const int64_t padded = groups * kLinearGroup;
  for (std::string* x : {&q, &k, &v}) {
    *x = graph.reshape(tools.pad(*x, 4, 2, 0, padded - tokens),
                       {kBatch, op.heads.heads, groups, kLinearGroup, op.heads.head_dim});
  }
  const auto lower = [] {
    std::vector<float> values;
    for (int64_t i = 0; i < kLinearGroup; ++i) {
      for (int64_t j = 0; j < kLinearGroup; ++j) values.push_back(j <= i ? 1 : 0);
    }
    return values;
  };
  const auto pairs =
      graph.node("Mul", {graph.node("MatMul", {q, heads.flipped(k, 5)}),
                         tools.shared("lower", {kLinearGroup, kLinearGroup}, lower)});
  auto mixed = graph.node("MatMul", {pairs, v});
  auto norm = tools.reduce_sum(pairs, 4);
  if (groups > 1) {
    const auto before = [&](const std::string& x) {
      return graph.node("CumSum", {x, graph.integer(2)}, {{"exclusive", int64_t{1}}});
    };
    const auto sums = before(graph.node("MatMul", {heads.flipped(k, 5), v}));
    const auto all = heads.flipped(before(tools.reduce_sum(k, 3)), 5);
    mixed = graph.node("Add", {mixed, graph.node("MatMul", {q, sums})});
    norm = graph.node("Add", {norm, graph.node("MatMul", {q, all})});
  }
  const auto whole =
      graph.reshape(divided(mixed, norm), {kBatch, op.heads.heads, padded, op.heads.head_dim});
  return heads.join(tools.slice(whole, 0, tokens, 2));
}

}  // namespace adjoin::io
