#pragma once

// Swin (Liu et al. 2021): attention inside shifted windows, four stages that halve the grid.

#include <optional>
#include <vector>

#include "adjoin/spec/block.h"

namespace adjoin {

struct ModelSpec;
struct Op;
struct TensorInfo;

struct SwinBlockSpec : BlockSpec {
  int64_t shift = 0;  ///< stored, so that removing a block does not change its neighbours

  bool operator==(const SwinBlockSpec&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, SwinBlockSpec& block) {
  fields(visit, static_cast<BlockSpec&>(block));
  visit("shift", block.shift, Range{0, 1023});
}

struct SwinStage {
  int64_t embed_dim = 96;
  std::vector<SwinBlockSpec> blocks;

  bool operator==(const SwinStage&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, SwinStage& stage) {
  visit("embed_dim", stage.embed_dim, Range{1, 16384});
  visit("blocks", stage.blocks);
}

struct SwinSpec {
  int64_t patch_size = 4;
  int64_t window = 7;
  std::vector<SwinStage> stages;

  bool operator==(const SwinSpec&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, SwinSpec& swin) {
  visit("patch_size", swin.patch_size, Range{1, 1024});
  visit("window", swin.window, Range{1, 1024});
  visit("stages", swin.stages);
}

/// The windows of one block: a grid x grid image of tokens cut into size x size windows after
/// rolling it by `shift`.
struct Window {
  int64_t grid = 0;
  int64_t size = 0;
  int64_t shift = 0;

  int64_t count() const { return (grid / size) * (grid / size); }
  int64_t tokens() const { return size * size; }
  bool operator==(const Window&) const = default;
};

/// Tokens per side in stage `stage`.
int64_t stage_grid(const ModelSpec& model, const SwinSpec& swin, size_t stage);

/// Window of a stage: a grid no larger than the window is one window.
int64_t stage_window(const ModelSpec& model, const SwinSpec& swin, size_t stage);

/// Shift of a block that stands at an odd place of its stage: half the window, or nothing where one
/// window covers the grid.
int64_t odd_block_shift(const ModelSpec& model, const SwinSpec& swin, size_t stage);

void validate_family(const ModelSpec& model, const SwinSpec& swin);
std::vector<TensorInfo> tensors_of(const ModelSpec& model, const SwinSpec& swin);
std::vector<Op> ops_of(const ModelSpec& model, const SwinSpec& swin);

}  // namespace adjoin
