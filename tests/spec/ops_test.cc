#include "adjoin/spec/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/tensors.h"
#include "support/random_spec.h"

namespace adjoin {
namespace {

using Shape = std::vector<int64_t>;

/// Follows a forward pass with shapes alone, by rules written apart from the ones that made it.
class ShapeWalk {
 public:
  explicit ShapeWalk(const ModelSpec& spec) : spec_(spec), list_(ops(spec)) {
    for (const TensorInfo& row : tensors(spec)) shapes_[row.name] = row.shape();
  }

  void check() {
    for (size_t i = 0; i < list_.size(); ++i) {
      op_ = &list_[i];
      SCOPED_TRACE(spec_.name + " op " + op_->name);
      ASSERT_FALSE(op_->inputs.empty());
      for (const int64_t input : op_->inputs) {
        ASSERT_GE(input, kImage);
        ASSERT_LT(input, static_cast<int64_t>(i));
        if (input != kImage) ++readers_[input];
      }
      std::visit([this](const auto& detail) { check(detail); }, op_->detail);
    }
    for (const auto& [name, shape] : shapes_)
      EXPECT_EQ(users_[name], 1) << spec_.name << " " << name;
    for (size_t i = 0; i + 1 < list_.size(); ++i) {
      EXPECT_GE(readers_[static_cast<int64_t>(i)], 1) << spec_.name << " " << list_[i].name;
    }
    EXPECT_EQ(list_.back().shape, Shape{spec_.num_classes}) << spec_.name;
  }

 private:
  const Shape& out() const { return op_->shape; }
  const Shape& in(size_t i = 0) const {
    static const Shape kNone;
    return op_->inputs.at(i) == kImage ? kNone : list_[op_->inputs[i]].shape;
  }

  void expect_tensor(const std::string& name, const Shape& shape) {
    ++users_[name];
    ASSERT_TRUE(shapes_.contains(name)) << name;
    EXPECT_EQ(shapes_.at(name), shape) << name;
  }
  void expect_one_input(bool is_image = false) const {
    EXPECT_EQ(op_->inputs.size(), 1U);
    EXPECT_EQ(op_->inputs.front() == kImage, is_image);
  }

  void check(const PatchEmbedOp& o) {
    expect_one_input(/*is_image=*/true);
    EXPECT_EQ(o.in_chans, spec_.in_chans);
    EXPECT_EQ(out()[0] * o.patch * o.patch, spec_.img_size * spec_.img_size);
    expect_tensor(o.weight, {out()[1], o.in_chans, o.patch, o.patch});
    expect_tensor(o.bias, {out()[1]});
  }
  void check(const UnfoldOp& o) {
    expect_one_input(/*is_image=*/!o.is_from_tokens);
    EXPECT_EQ(o.is_from_tokens ? in() : (Shape{spec_.img_size * spec_.img_size, spec_.in_chans}),
              (Shape{o.grid * o.grid, o.channels}));
    int64_t grid = 0;  // places where the kernel fits
    for (int64_t at = -o.padding; at + o.kernel <= o.grid + o.padding; at += o.stride) ++grid;
    EXPECT_EQ(out(), (Shape{grid * grid, o.channels * o.kernel * o.kernel}));
  }
  void check(const LinearOp& o) {
    expect_one_input();
    Shape expected = in();
    EXPECT_EQ(expected.back(), o.in_features);
    expected.back() = o.out_features;
    EXPECT_EQ(out(), expected);
    expect_tensor(o.weight, {o.out_features, o.in_features});
    if (!o.bias.empty()) expect_tensor(o.bias, {o.out_features});
  }
  void check(const NormOp& o) {
    expect_one_input();
    EXPECT_EQ(out(), in());
    EXPECT_EQ(o.eps, spec_.norm_eps);
    expect_tensor(o.weight, {out().back()});
    expect_tensor(o.bias, {out().back()});
  }
  void check(const AttentionOp& o) {
    expect_one_input();
    EXPECT_EQ(in(), (Shape{out()[0], 3 * o.heads * o.head_dim}));
    EXPECT_EQ(out()[1], o.heads * o.head_dim);
    EXPECT_EQ(o.window.has_value(), !o.bias_table.empty());
    EXPECT_EQ(o.distance > 0, !o.tables.empty());
    for (const std::string& table : o.tables) {
      expect_tensor(table, {2 * o.distance + 2, o.head_dim});
    }
    if (!o.window) return;
    EXPECT_EQ(out()[0], o.window->grid * o.window->grid);
    EXPECT_EQ(o.window->grid % o.window->size, 0);
    EXPECT_EQ(o.window->count() * o.window->tokens(), out()[0]);
    EXPECT_LT(o.window->shift, o.window->size);
    const int64_t side = 2 * o.window->size - 1;
    expect_tensor(o.bias_table, {side * side, o.heads});
  }
  void expect_heads(const Heads& heads, int64_t parts) {
    expect_one_input();
    EXPECT_EQ(in(), (Shape{out()[0], parts * heads.heads * heads.head_dim}));
    EXPECT_EQ(out()[1], heads.heads * heads.head_dim);
  }
  void check(const LinformerOp& o) {
    expect_heads(o.heads, 3);
    const int64_t tokens = o.window ? o.window->tokens() : out()[0];
    EXPECT_LE(o.k, tokens);
    const Shape shape = o.is_per_head ? Shape{o.heads.heads, tokens, o.k} : Shape{tokens, o.k};
    expect_tensor(o.keys, shape);
    if (o.values != o.keys) expect_tensor(o.values, shape);
  }
  void check(const SparseOp& o) { expect_heads(o.heads, 3); }
  void check(const LshOp& o) {
    expect_heads(o.heads, 2);
    const int64_t chunks = lsh_chunks(o.mixer, out()[0]);
    EXPECT_EQ(chunks % 2, 0);
    EXPECT_GE(chunks * o.mixer.chunk, out()[0]);
    expect_tensor(o.rotations, {o.mixer.rounds, o.heads.head_dim, chunks / 2});
  }
  void check(const LinearMixerOp& o) {
    expect_heads(o.heads, 3);
    EXPECT_TRUE(!o.window || o.window->shift == 0);
  }
  void check(const CirculantOp& o) {
    expect_one_input();
    EXPECT_EQ(in()[1], o.width);
    EXPECT_EQ(o.width % o.blocks, 0);
    EXPECT_EQ(out(), (Shape{in()[0], o.branches * o.width}));
    expect_tensor(o.weight, {o.branches, o.blocks, o.blocks, o.width / o.blocks});
    expect_tensor(o.bias, {o.branches * o.width});
  }
  void check(const FoldOp& o) {
    expect_one_input();
    EXPECT_EQ(in(), (Shape{out()[0], o.parts * out()[1]}));
  }
  void check(const ScaleOp&) {
    expect_one_input();
    EXPECT_EQ(out(), in());
  }
  void check(const PerformerOp& o) {
    expect_one_input();
    EXPECT_EQ(in(), (Shape{out()[0], 3 * o.dim}));
    EXPECT_EQ(out()[1], o.dim);
    expect_tensor(o.weight, {o.features, o.dim});
  }
  void check(const SliceOp& o) {
    expect_one_input();
    EXPECT_GE(o.begin, 0);
    EXPECT_LE(o.end, in()[1]);
    EXPECT_EQ(out(), (Shape{in()[0], o.end - o.begin}));
  }
  void check(const GeluOp&) {
    expect_one_input();
    EXPECT_EQ(out(), in());
  }
  void check(const AddOp&) { expect_equal_inputs(); }
  void check(const AverageOp&) { expect_equal_inputs(); }
  void expect_equal_inputs() const {
    EXPECT_GE(op_->inputs.size(), 2U);
    for (size_t i = 0; i < op_->inputs.size(); ++i) EXPECT_EQ(in(i), out());
  }
  void check(const AddTensorOp& o) {
    expect_one_input();
    EXPECT_EQ(out(), in());
    expect_tensor(o.tensor, {1, out()[0], out()[1]});
  }
  void check(const PrependOp& o) {
    expect_one_input();
    EXPECT_EQ(out(), (Shape{in()[0] + static_cast<int64_t>(o.tokens.size()), in()[1]}));
    for (const std::string& token : o.tokens) expect_tensor(token, {1, 1, out()[1]});
  }
  void check(const MergeOp& o) {
    expect_one_input();
    EXPECT_EQ(o.grid % 2, 0);
    EXPECT_EQ(in()[0], o.grid * o.grid);
    EXPECT_EQ(out(), (Shape{(o.grid / 2) * (o.grid / 2), 4 * in()[1]}));
  }
  void check(const PoolOp& o) {
    expect_one_input();
    EXPECT_GE(o.first, 0);
    EXPECT_GE(o.count, 1);
    EXPECT_LE(o.first + o.count, in()[0]);
    EXPECT_EQ(out(), Shape{in()[1]});
  }

  const ModelSpec& spec_;
  const std::vector<Op> list_;
  std::map<std::string, Shape> shapes_;
  std::map<std::string, int> users_;
  std::map<int64_t, int> readers_;
  const Op* op_ = nullptr;
};

int64_t index_of(const std::vector<Op>& list, const std::string& name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return static_cast<int64_t>(i);
  }
  ADD_FAILURE() << "no op " << name;
  return 0;
}

template <class Detail>
const Detail& detail_of(const std::vector<Op>& list, const std::string& name) {
  return std::get<Detail>(list[index_of(list, name)].detail);
}

class CatalogOpsTest : public testing::TestWithParam<std::string> {};

TEST_P(CatalogOpsTest, ReadEarlierOpsUseEveryTensorOnceAndKeepShapes) {
  const ModelSpec spec = catalog_spec(GetParam());
  ShapeWalk(spec).check();
}

INSTANTIATE_TEST_SUITE_P(Models, CatalogOpsTest, testing::ValuesIn(catalog_names()),
                         [](const auto& p) { return p.param; });

TEST(OpsTest, OfRandomSpecsReadEarlierOpsUseEveryTensorOnceAndKeepShapes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const ModelSpec spec = random_spec(seed);
    ShapeWalk(spec).check();
  }
}

TEST(OpsTest, BearNamesThatStandOnce) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::map<std::string, int> count;
    for (const Op& op : ops(random_spec(seed))) {
      EXPECT_EQ(++count[op.name], 1) << seed << " " << op.name;
    }
  }
}

TEST(OpsTest, OfABlockEndInAnOpOfItsNameAndKnowTheirBlock) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const ModelSpec spec = random_spec(seed);
    const std::vector<PlacedBlock> placed = placed_blocks(spec);
    std::vector<std::string> last(placed.size());
    for (const Op& op : ops(spec)) {
      EXPECT_EQ(op.block >= 0, op.name.find("blocks.") != std::string::npos) << op.name;
      if (op.block >= 0) last.at(op.block) = op.name;
    }
    for (size_t i = 0; i < placed.size(); ++i) EXPECT_EQ(last[i], placed[i].name);
  }
}

TEST(OpsTest, AddTheOutputOfASkipsSourceToTheInputOfItsTarget) {
  ModelSpec spec = catalog_spec("vit_mini_28");
  spec.skips = {{0, 3}, {1, 3}};
  const std::vector<Op> list = ops(spec);
  const int64_t first = index_of(list, "blocks.3.skip0.add");
  const int64_t second = index_of(list, "blocks.3.skip1.add");
  EXPECT_EQ(list[first].inputs,
            (std::vector<int64_t>{index_of(list, "blocks.2"), index_of(list, "blocks.0")}));
  EXPECT_EQ(list[second].inputs, (std::vector<int64_t>{first, index_of(list, "blocks.1")}));
  EXPECT_EQ(list[index_of(list, "blocks.3.norm1")].inputs, std::vector<int64_t>{second});
  EXPECT_EQ(list[index_of(list, "blocks.3.add1")].inputs.front(), second);
  EXPECT_EQ(list.size(), ops(catalog_spec("vit_mini_28")).size() + 2);
}

TEST(OpsTest, ScaleAttentionByItsHeadDimension) {
  ModelSpec spec = catalog_spec("vit_mini_28");
  std::get<VitSpec>(spec.family).blocks[1].head_dim = 25;
  EXPECT_DOUBLE_EQ(detail_of<AttentionOp>(ops(spec), "blocks.1.attn").scale, 0.2);
}

TEST(OpsTest, ScaleTheTokenLayersOfT2tByTheirInputWidth) {
  const std::vector<Op> list = ops(catalog_spec("t2t_vit_t_14"));
  EXPECT_DOUBLE_EQ(detail_of<AttentionOp>(list, "tokens_to_token.attention1.mix").scale,
                   1 / std::sqrt(147.0));
  EXPECT_DOUBLE_EQ(detail_of<AttentionOp>(list, "tokens_to_token.attention2.mix").scale,
                   1 / std::sqrt(576.0));
}

TEST(OpsTest, GiveTheShortcutOfAT2tTokenLayerItsValues) {
  for (const char* model : {"t2t_vit_14", "t2t_vit_t_14"}) {
    const std::vector<Op> list = ops(catalog_spec(model));
    const auto& slice = detail_of<SliceOp>(list, "tokens_to_token.attention1.v");
    EXPECT_EQ(slice.begin, 128);
    EXPECT_EQ(slice.end, 192);
    EXPECT_EQ(list[index_of(list, "tokens_to_token.attention1.add1")].inputs.front(),
              index_of(list, "tokens_to_token.attention1.v"));
  }
}

TEST(OpsTest, WalkTheSoftSplitsOfT2tThroughThePublishedShapes) {
  const std::vector<Op> list = ops(catalog_spec("t2t_vit_14"));
  EXPECT_EQ(list[index_of(list, "tokens_to_token.soft_split0")].shape, (Shape{3136, 147}));
  EXPECT_EQ(list[index_of(list, "tokens_to_token.soft_split1")].shape, (Shape{784, 576}));
  EXPECT_EQ(list[index_of(list, "tokens_to_token.soft_split2")].shape, (Shape{196, 576}));
  EXPECT_EQ(list[index_of(list, "tokens_to_token.project")].shape, (Shape{196, 384}));
}

TEST(OpsTest, PoolTheClassTokenOrThePatchesAlone) {
  ModelSpec spec = catalog_spec("deit_tiny_distilled_patch16_224");
  EXPECT_EQ(detail_of<PoolOp>(ops(spec), "head.pool").first, 0);
  EXPECT_EQ(detail_of<PoolOp>(ops(spec), "head.pool").count, 1);
  EXPECT_EQ(detail_of<PoolOp>(ops(spec), "head_dist.pool").first, 1);
  EXPECT_EQ(detail_of<PoolOp>(ops(spec), "head_dist.pool").count, 1);
  std::get<VitSpec>(spec.family).pool = PoolKind::kAvg;
  EXPECT_EQ(detail_of<PoolOp>(ops(spec), "head.pool").first, 2);
  EXPECT_EQ(detail_of<PoolOp>(ops(spec), "head.pool").count, 196);
}

TEST(OpsTest, AverageTheTwoHeadsOfADistilledNetwork) {
  const std::vector<Op> list = ops(catalog_spec("deit_tiny_distilled_patch16_224"));
  ASSERT_TRUE(std::holds_alternative<AverageOp>(list.back().detail));
  EXPECT_EQ(list.back().inputs,
            (std::vector<int64_t>{index_of(list, "head"), index_of(list, "head_dist")}));
}

TEST(OpsTest, PutTheClassTokenBeforeTheDistillationToken) {
  const std::vector<Op> list = ops(catalog_spec("deit_tiny_distilled_patch16_224"));
  EXPECT_EQ(detail_of<PrependOp>(list, "tokens").tokens,
            (std::vector<std::string>{"cls_token", "dist_token"}));
}

TEST(OpsTest, ShiftSwinsWindowsByTheStoredShift) {
  ModelSpec spec = catalog_spec("swin_mini_28");
  std::get<SwinSpec>(spec.family).stages[0].blocks[0].shift = 5;
  EXPECT_EQ(detail_of<AttentionOp>(ops(spec), "layers.0.blocks.0.attn").window, (Window{14, 7, 5}));
}

TEST(OpsTest, HaveNoBiasInQkvWhenTheSpecSaysSo) {
  ModelSpec spec = catalog_spec("vit_mini_28");
  EXPECT_EQ(detail_of<LinearOp>(ops(spec), "blocks.0.attn.qkv").bias, "blocks.0.attn.qkv.bias");
  spec.qkv_bias = false;
  EXPECT_EQ(detail_of<LinearOp>(ops(spec), "blocks.0.attn.qkv").bias, "");
}

}  // namespace
}  // namespace adjoin
