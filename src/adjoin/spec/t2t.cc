#include "adjoin/spec/t2t.h"

#include <cmath>

#include "adjoin/spec/ops.h"
#include "adjoin/spec/tensors.h"
#include "adjoin/spec/trunk.h"

namespace adjoin {
namespace {

constexpr double kPerformerEps = 1e-8;

std::string layer_prefix(size_t index) {
  return fmt::format("tokens_to_token.attention{}.", index + 1);
}

void token_layer_tensors(TensorTable& table, const TokensSpec& tokens, size_t index, int64_t in) {
  const std::string prefix = layer_prefix(index);
  const Axis dim = whole(tokens.dim);
  if (tokens.kind == TokensKind::kPerformer) {
    const int64_t features = performer_features(tokens);
    table.add(prefix + "w", {whole(features), dim},
              {InitKind::kOrthogonal, std::sqrt(static_cast<double>(features))},
              /*has_decay=*/false, /*is_trained=*/false);
    table.linear(prefix + "kqv.", whole(3 * tokens.dim), whole(in));
    table.linear(prefix + "proj.", dim, dim);
    table.norm(prefix + "norm1.", whole(in));
    table.norm(prefix + "norm2.", dim);
    table.linear(prefix + "mlp.0.", dim, dim);
    table.linear(prefix + "mlp.2.", dim, dim);
  } else {
    table.norm(prefix + "norm1.", whole(in));
    table.linear(prefix + "attn.qkv.", whole(3 * tokens.dim), whole(in), /*has_bias=*/false);
    table.linear(prefix + "attn.proj.", dim, dim);
    table.norm(prefix + "norm2.", dim);
    table.linear(prefix + "mlp.fc1.", dim, dim);
    table.linear(prefix + "mlp.fc2.", dim, dim);
  }
}

/// Attention whose shortcut is v, since its input has another width; then a small MLP.
int64_t token_layer_ops(OpGraph& graph, const TokensSpec& tokens, size_t index, int64_t x) {
  const std::string prefix = layer_prefix(index);
  const std::string name = prefix.substr(0, prefix.size() - 1);
  const bool is_performer = tokens.kind == TokensKind::kPerformer;
  const int64_t count = graph.shape(x)[0];
  const int64_t in = graph.shape(x)[1];
  const int64_t dim = tokens.dim;
  const std::string attn = is_performer ? prefix : prefix + "attn.";
  const int64_t norm1 = graph.norm(prefix + "norm1.", x);
  const int64_t qkv = graph.linear(attn + (is_performer ? "kqv." : "qkv."), norm1, 3 * dim,
                                   /*has_bias=*/is_performer);
  const OpDetail mix =
      is_performer
          ? OpDetail(PerformerOp{prefix + "w", dim, performer_features(tokens), kPerformerEps})
          : OpDetail(
                AttentionOp{1, dim, 1 / std::sqrt(static_cast<double>(in)), std::nullopt, "", {}});
  const int64_t mixed = graph.add(prefix + "mix", mix, {qkv}, {count, dim});
  const int64_t v = graph.add(prefix + "v", SliceOp{2 * dim, 3 * dim}, {qkv}, {count, dim});
  const int64_t proj = graph.linear(attn + "proj.", mixed, dim, true);
  const int64_t y = graph.add(prefix + "add1", AddOp{}, {v, proj}, {count, dim});
  const int64_t norm2 = graph.norm(prefix + "norm2.", y);
  const int64_t fc1 =
      graph.linear(prefix + (is_performer ? "mlp.0." : "mlp.fc1."), norm2, dim, true);
  const int64_t act = graph.gelu(prefix + "mlp.act", fc1);
  const int64_t fc2 = graph.linear(prefix + (is_performer ? "mlp.2." : "mlp.fc2."), act, dim, true);
  return graph.add(name, AddOp{}, {y, fc2}, {count, dim});
}

}  // namespace

std::vector<SplitShape> split_shapes(const ModelSpec& model, const T2tSpec& t2t) {
  std::vector<SplitShape> shapes;
  int64_t grid = model.img_size;
  int64_t channels = model.in_chans;
  for (const Split& split : t2t.tokens.splits) {
    const int64_t span = grid + 2 * split.padding - split.kernel;
    grid = span < 0 ? 0 : span / split.stride + 1;
    shapes.push_back({channels, grid, channels * split.kernel * split.kernel});
    channels = t2t.tokens.dim;
  }
  return shapes;
}

void validate_family(const ModelSpec& model, const T2tSpec& t2t) {
  const auto& splits = t2t.tokens.splits;
  if (splits.empty() || splits.size() > 8) {
    throw Error(ErrorKind::kConfig,
                fmt::format("model.tokens.splits: has {}, must have 1 to 8", splits.size()));
  }
  const auto shapes = split_shapes(model, t2t);
  int64_t grid = model.img_size;
  for (size_t i = 0; i < splits.size(); ++i) {
    if (shapes[i].out_grid < 1) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("model.tokens.splits.{}: kernel {} is wider than the {}x{} grid with "
                              "padding {}; legal: up to {}",
                              i, splits[i].kernel, grid, grid, splits[i].padding,
                              grid + 2 * splits[i].padding));
    }
    grid = shapes[i].out_grid;
    check_tokens(grid * grid);
  }
}

std::vector<TensorInfo> tensors_of(const ModelSpec& model, const T2tSpec& t2t) {
  std::vector<TensorInfo> rows;
  TensorTable table(rows);
  const auto shapes = split_shapes(model, t2t);
  const int64_t patches = shapes.back().out_grid * shapes.back().out_grid;
  trunk_token_tensors(table, t2t.embed_dim, patches + 1, /*is_distilled=*/false, t2t.pos_embed);
  for (size_t i = 0; i + 1 < shapes.size(); ++i) {
    token_layer_tensors(table, t2t.tokens, i, shapes[i].out_features);
  }
  table.linear("tokens_to_token.project.", embed(t2t.embed_dim), whole(shapes.back().out_features));
  trunk_block_tensors(table, model, t2t.embed_dim, /*is_distilled=*/false);
  return rows;
}

std::vector<Op> ops_of(const ModelSpec& model, const T2tSpec& t2t) {
  OpGraph graph(model);
  const auto shapes = split_shapes(model, t2t);
  int64_t x = kImage;
  int64_t grid = model.img_size;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Split& split = t2t.tokens.splits[i];
    x = graph.add(fmt::format("tokens_to_token.soft_split{}", i),
                  UnfoldOp{split.kernel, split.stride, split.padding, shapes[i].in_channels, grid,
                           /*is_from_tokens=*/i > 0},
                  {x}, {shapes[i].out_grid * shapes[i].out_grid, shapes[i].out_features});
    if (i + 1 < shapes.size()) x = token_layer_ops(graph, t2t.tokens, i, x);
    grid = shapes[i].out_grid;
  }
  x = graph.linear("tokens_to_token.project.", x, t2t.embed_dim, true);
  graph.token_trunk(x, t2t.pool, /*is_distilled=*/false);
  return graph.take();
}

}  // namespace adjoin
