#include "adjoin/spec/swin.h"

#include "adjoin/spec/ops.h"
#include "adjoin/spec/tensors.h"
#include "adjoin/spec/trunk.h"

namespace adjoin {
namespace {

/// What keeps an image of this size from being cut into windows in every stage; nothing if legal.
std::optional<std::string> misfit(const SwinSpec& swin, int64_t img_size, int64_t window) {
  if (img_size % swin.patch_size != 0) {
    return fmt::format("{} is not a multiple of patch_size {}", img_size, swin.patch_size);
  }
  int64_t grid = img_size / swin.patch_size;
  for (size_t s = 0; s < swin.stages.size(); ++s) {
    const bool is_last = s + 1 == swin.stages.size();
    if (grid > window && grid % window != 0) {
      return fmt::format("window {} does not divide the {}x{} grid of stage {}", window, grid, grid,
                         s);
    }
    if (!is_last && (grid % 2 != 0 || grid < 2)) {
      return fmt::format("the {}x{} grid of stage {} cannot be halved", grid, grid, s);
    }
    grid /= 2;
  }
  return std::nullopt;
}

/// "nearest legal img_size: 224 or 448; legal windows at this size: 7, 14".
std::string legal_sizes(const SwinSpec& swin, int64_t img_size) {
  constexpr int64_t kFarthest = 1024;
  std::string text;
  for (const int64_t step : {-1, 1}) {
    for (int64_t size = img_size; size > 0 && std::abs(size - img_size) <= kFarthest;
         size += step) {
      if (!misfit(swin, size, swin.window)) {
        text += fmt::format("{}{}", text.empty() ? "nearest legal img_size: " : " or ", size);
        break;
      }
    }
  }
  std::vector<std::string> windows;
  for (int64_t window = 2; window <= img_size / swin.patch_size && windows.size() < 8; ++window) {
    if (!misfit(swin, img_size, window)) windows.push_back(std::to_string(window));
  }
  if (!windows.empty()) {
    text +=
        (text.empty() ? "" : "; ") + fmt::format("legal windows at {}: ", img_size) + join(windows);
  }
  return text.empty() ? "" : "; " + text;
}

std::string merge_prefix(size_t stage) { return fmt::format("layers.{}.downsample.", stage); }

}  // namespace

int64_t stage_grid(const ModelSpec& model, const SwinSpec& swin, size_t stage) {
  return (model.img_size / swin.patch_size) >> stage;
}

int64_t stage_window(const ModelSpec& model, const SwinSpec& swin, size_t stage) {
  return std::min(swin.window, stage_grid(model, swin, stage));
}

int64_t odd_block_shift(const ModelSpec& model, const SwinSpec& swin, size_t stage) {
  return stage_grid(model, swin, stage) <= swin.window ? 0 : swin.window / 2;
}

void validate_family(const ModelSpec& model, const SwinSpec& swin) {
  if (swin.stages.empty() || swin.stages.size() > 8) {
    throw Error(ErrorKind::kConfig,
                fmt::format("model.stages: has {}, must have 1 to 8", swin.stages.size()));
  }
  if (const auto reason = misfit(swin, model.img_size, swin.window)) {
    throw Error(ErrorKind::kConfig, fmt::format("model.img_size: {}: {}{}", model.img_size, *reason,
                                                legal_sizes(swin, model.img_size)));
  }
  check_tokens(stage_grid(model, swin, 0) * stage_grid(model, swin, 0));
  for (size_t s = 0; s < swin.stages.size(); ++s) {
    const int64_t window = stage_window(model, swin, s);
    const int64_t most = stage_grid(model, swin, s) <= swin.window ? 0 : window - 1;
    for (size_t b = 0; b < swin.stages[s].blocks.size(); ++b) {
      const int64_t shift = swin.stages[s].blocks[b].shift;
      if (shift > most) {
        throw Error(
            ErrorKind::kConfig,
            fmt::format("model.stages.{}.blocks.{}.shift: is {}, must be {} with windows of "
                        "{} on a {}x{} grid",
                        s, b, shift, most == 0 ? "0" : fmt::format("0 to {}", most), window,
                        stage_grid(model, swin, s), stage_grid(model, swin, s)));
      }
    }
  }
}

std::vector<TensorInfo> tensors_of(const ModelSpec& model, const SwinSpec& swin) {
  std::vector<TensorInfo> rows;
  TensorTable table(rows);
  const int64_t stem = swin.stages.front().embed_dim;
  table.patch_conv("patch_embed.proj.", stem, model.in_chans, swin.patch_size);
  table.norm("patch_embed.norm.", embed(stem));
  const std::vector<PlacedBlock> placed = placed_blocks(model);
  int64_t index = 0;
  for (size_t s = 0; s < swin.stages.size(); ++s) {
    const SwinStage& stage = swin.stages[s];
    if (s > 0) {
      const int64_t before = swin.stages[s - 1].embed_dim;
      table.norm(merge_prefix(s) + "norm.", embed(before, 4));
      table.linear(merge_prefix(s) + "reduction.", embed(stage.embed_dim), embed(before, 4),
                   /*has_bias=*/false);
    }
    for (size_t b = 0; b < stage.blocks.size(); ++b) {
      table.enter_block(index);
      table.transformer_block(placed[static_cast<size_t>(index)], model.qkv_bias);
      table.skips(model, placed, index++);
    }
    table.enter_block(-1);
  }
  table.norm("norm.", embed(swin.stages.back().embed_dim));
  table.linear("head.fc.", whole(model.num_classes), embed(swin.stages.back().embed_dim));
  return rows;
}

std::vector<Op> ops_of(const ModelSpec& model, const SwinSpec& swin) {
  OpGraph graph(model);
  int64_t grid = stage_grid(model, swin, 0);
  int64_t x = graph.add("patch_embed.proj",
                        PatchEmbedOp{"patch_embed.proj.weight", "patch_embed.proj.bias",
                                     model.in_chans, swin.patch_size},
                        {kImage}, {grid * grid, swin.stages.front().embed_dim});
  x = graph.norm("patch_embed.norm.", x);
  for (size_t s = 0; s < swin.stages.size(); ++s) {
    if (s > 0) {
      x = graph.add(merge_prefix(s) + "merge", MergeOp{grid}, {x},
                    {grid * grid / 4, 4 * swin.stages[s - 1].embed_dim});
      x = graph.norm(merge_prefix(s) + "norm.", x);
      x = graph.linear(merge_prefix(s) + "reduction.", x, swin.stages[s].embed_dim, false);
      grid /= 2;
    }
    for (size_t b = 0; b < swin.stages[s].blocks.size(); ++b) x = graph.transformer_block(x);
  }
  x = graph.norm("norm.", x);
  x = graph.add("head.pool", PoolOp{0, grid * grid}, {x}, {swin.stages.back().embed_dim});
  graph.linear("head.fc.", x, model.num_classes, true);
  return graph.take();
}

}  // namespace adjoin
