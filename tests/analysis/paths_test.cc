#include "adjoin/analysis/paths.h"

#include <cmath>

#include "adjoin/analysis/rerun_paths.h"
#include "adjoin/analysis/token_rank.h"
#include "adjoin/models/forward.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/expect_error.h"
#include "support/gap.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"

namespace adjoin::analysis {
namespace {

class PathsTest : public SeededTest {
 protected:
  static ModelSpec spec_of(const std::vector<Override>& changes) {
    std::vector<Override> all = {{"depth", "3"}, {"embed_dim", "16"}, {"heads", "2"}};
    all.insert(all.end(), changes.begin(), changes.end());
    return with_overrides(catalog_spec("vit_mini_28"), all);
  }

  AttentionStack stack_of(const ModelSpec& spec, StackOptions options = {}) {
    weights = random_weights(spec, torch::kFloat64);
    return attention_stack({spec, weights}, image, options);
  }

  static torch::Tensor sum_of(const PathSplit& split) {
    auto sum = split.constant;
    for (const auto& part : split.lengths) sum = sum + part;
    return sum;
  }

  static double relative_gap(const torch::Tensor& a, const torch::Tensor& b) {
    return gap(a, b) / b.abs().max().item<double>();
  }

  torch::Tensor image = randn64({1, 1, 28, 28});
  Weights weights;
};

TEST_F(PathsTest, TheirSumIsTheOutputForEveryNormWithAndWithoutSkips) {
  for (const auto& [name, norm] : kEnumNames<NormPlacement>) {
    const ModelSpec spec = spec_of({{"norm", std::string(name)}});
    for (const bool has_norms : {true, false}) {
      for (const bool has_skips : {true, false}) {
        const AttentionStack stack = stack_of(spec, {has_norms, has_skips});
        EXPECT_LT(relative_gap(sum_of(split_by_length(stack)), stack.output), 1e-10)
            << name << has_norms << has_skips;
      }
    }
  }
}

TEST_F(PathsTest, TheirSumIsTheOutputForEveryMixer) {
  for (const auto& [name, kind] : kEnumNames<MixerKind>) {
    const AttentionStack stack = stack_of(spec_of({{"mixer", std::string(name)}}));
    EXPECT_LT(relative_gap(sum_of(split_by_length(stack)), stack.output), 1e-10) << name;
  }
}

TEST_F(PathsTest, TheSplitByLengthIsTheSumOfAllSinglePaths) {
  const AttentionStack stack = stack_of(spec_of({}));
  const PathSplit split = split_by_length(stack);
  for (int64_t k = 0; k <= 3; ++k) {
    auto sum = torch::zeros_like(stack.input);
    const auto paths = some_paths(stack, k, 1000, 0);
    for (const Path& path : paths) sum = sum + path_value(stack, path);
    EXPECT_EQ(static_cast<double>(paths.size()), count_paths(stack)[static_cast<size_t>(k)]);
    EXPECT_LT(relative_gap(sum, split.lengths[static_cast<size_t>(k)]), 1e-10) << k;
  }
}

TEST_F(PathsTest, WithTheOtherOrderOfAttentionTheSumIsNotTheOutput) {
  const AttentionStack stack = stack_of(spec_of({}), {false, true});
  auto wrong = split_by_length(stack).constant;
  for (int64_t k = 0; k <= 3; ++k) {
    for (const Path& path : some_paths(stack, k, 1000, 0)) {
      torch::Tensor left = torch::eye(stack.input.size(0), torch::kFloat64);
      torch::Tensor right = torch::eye(stack.input.size(1), torch::kFloat64);
      for (size_t l = 0; l < path.size(); ++l) {
        if (path[l] == kBeside) continue;
        const TokenMap& head = stack.layers[l].heads[static_cast<size_t>(path[l])];
        left = torch::matmul(left, head.left);  // earlier ones on the left, as the notes print it
        right = torch::matmul(right, head.right);
      }
      wrong = wrong + torch::matmul(torch::matmul(left, stack.input), right);
    }
  }
  EXPECT_GT(relative_gap(wrong, stack.output), 1e-3);
}

TEST_F(PathsTest, ThereAreBinomialTimesHeadsToTheLengthOfThem) {
  const AttentionStack stack = stack_of(spec_of({{"depth", "5"}}));
  const std::vector<double> counts = count_paths(stack);
  const double binomial[] = {1, 5, 10, 10, 5, 1};
  for (size_t k = 0; k <= 5; ++k) {
    EXPECT_EQ(counts[k], binomial[k] * std::pow(2.0, static_cast<double>(k)));
  }
  const AttentionStack bare = stack_of(spec_of({{"depth", "5"}}), {true, false});
  EXPECT_EQ(count_paths(bare), (std::vector<double>{0, 0, 0, 0, 0, 32}));
}

TEST_F(PathsTest, BlocksOfDifferentHeadsAreCountedAsTheyAre) {
  ModelSpec spec = spec_of({{"head_dim", "4"}, {"heads", "1,2,3"}});
  const AttentionStack stack = stack_of(spec);
  EXPECT_EQ(count_paths(stack), (std::vector<double>{1, 6, 11, 6}));
  EXPECT_LT(relative_gap(sum_of(split_by_length(stack)), stack.output), 1e-10);
}

TEST_F(PathsTest, EveryPathIsDrawnAsOftenAsAnyOther) {
  const AttentionStack stack = stack_of(spec_of({{"head_dim", "4"}, {"heads", "1,2,3"}}));
  std::map<Path, int> drawn;
  constexpr int kDraws = 11000;
  for (int i = 0; i < kDraws / 10; ++i) {
    for (const Path& path : some_paths(stack, 2, 10, static_cast<uint64_t>(i))) ++drawn[path];
  }
  EXPECT_EQ(drawn.size(), 11U);
  double chi_squared = 0;  // 10 degrees of freedom: above 29.6 once in a thousand
  for (const auto& [path, count] : drawn) chi_squared += std::pow(count - 1000.0, 2) / 1000;
  EXPECT_LT(chi_squared, 29.6);
}

TEST_F(PathsTest, DrawnPathsSumUpToTheirLengthOnAverage) {
  const AttentionStack stack = stack_of(spec_of({}), {false, true});
  const auto paths = some_paths(stack, 2, 11, 7);  // of 12
  ASSERT_EQ(paths.size(), 11U);
  auto sum = torch::zeros_like(stack.input);
  constexpr int kRounds = 400;
  for (int i = 0; i < kRounds; ++i) {
    for (const Path& path : some_paths(stack, 2, 11, static_cast<uint64_t>(i))) {
      sum = sum + path_value(stack, path) * (12.0 / 11 / kRounds);
    }
  }
  EXPECT_LT(relative_gap(sum, split_by_length(stack).lengths[2]), 0.15);
}

TEST_F(PathsTest, AreRefusedForWindows) {
  const ModelSpec spec = catalog_spec("swin_mini_28");
  weights = random_weights(spec, torch::kFloat64);
  expect_error(ErrorKind::kConfig, {"swin_mini_28", "windows"}, [&] {
    attention_stack({spec, weights}, image, {});
  });
}

TEST_F(PathsTest, RunAgainOfLengthNoneAnswerAsTheEmbeddingDoes) {
  const ModelSpec spec = spec_of({});
  const AttentionStack stack = stack_of(spec);
  const Sample sample{randn64({4, 1, 28, 28}), torch::tensor({0, 1, 2, 3})};
  const auto lengths = rerun_paths({spec, weights}, stack, sample, {4, 0});
  ASSERT_EQ(lengths.size(), 4U);
  const auto tokens = models::embed(spec, weights, sample.images);
  const double share = (frobenius(residual(tokens)) / frobenius(tokens)).mean().item<double>();
  EXPECT_NEAR(lengths[0].residual, share, 1e-12);
  EXPECT_EQ(lengths[0].paths, 1);
}

TEST_F(PathsTest, RunAgainThroughTheOneHeadOfOneBlockIsThatBlockWithoutSkips) {
  const ModelSpec spec = spec_of({{"depth", "1"}, {"heads", "1"}});
  const AttentionStack stack = stack_of(spec);
  const Sample sample{image, {}};
  const auto lengths = rerun_paths({spec, weights}, stack, sample, {4, 0});
  nn::Context context;
  context.has_skips = context.has_mlps = false;
  double wanted = 0;
  context.tap = [&](std::string_view name, const torch::Tensor& x) {
    if (name != "blocks.0") return;
    const auto y = torch::layer_norm(x, {x.size(-1)}, {}, {}, spec.norm_eps);
    wanted = (frobenius(residual(y)) / frobenius(y)).item<double>();
  };
  models::forward(spec, weights, image, context);
  EXPECT_NEAR(lengths[1].residual, wanted, 1e-12);
}

}  // namespace
}  // namespace adjoin::analysis
