#include "adjoin/search/proposers.h"

#include <cmath>
#include <numeric>

#include "adjoin/spec/catalog.h"
#include "support/gap.h"
#include "support/seeded_test.h"

namespace adjoin::search {
namespace {

class ProposersTest : public SeededTest {
 protected:
  /// A reward that can be computed: blocks matter, each by its own weight, and what is kept costs.
  static double reward(const Choice& choice) {
    double sum = 0;
    for (size_t i = 0; i < choice.blocks.size(); ++i) {
      const BlockChoice& block = choice.blocks[i];
      if (!block.keep) continue;
      const double heads = static_cast<double>(block.heads) / 8;
      const double hidden = static_cast<double>(block.hidden) / 128;
      const double weight = i % 2 == 0 ? 1.0 : 0.3;
      sum += weight * (std::sqrt(heads) + std::sqrt(hidden)) - 0.5 * (heads + hidden);
    }
    return sum;
  }

  using Propose = std::function<std::vector<Choice>(const std::vector<Outcome>&, uint64_t seed)>;

  double best_after(int64_t trials, uint64_t seed, const Propose& propose) const {
    std::vector<Outcome> tried;
    double best = -INFINITY;
    while (std::ssize(tried) < trials) {
      for (const Choice& choice : propose(tried, seed)) {
        tried.push_back({choice, reward(choice)});
        best = std::max(best, tried.back().reward);
      }
    }
    return best;
  }

  const Exploration space{catalog_spec("vit_mini_28"), {}};
};

TEST_F(ProposersTest, TheSequenceSaysWhatIsInTheChoice) {
  Choice choice = space.whole();
  choice.blocks[1].keep = false;
  choice.blocks[2].heads = 2;
  choice.blocks[3].hidden = 64;
  choice.skips = {{0, 2}};
  const auto rows = block_sequence(space, choice);
  ASSERT_EQ(rows.sizes(), (std::vector<int64_t>{4, 13}));
  EXPECT_EQ(rows[1].narrow(0, 0, 3).abs().sum().item<double>(), 0);
  EXPECT_EQ(rows[2][1].item<double>(), 0.25);
  EXPECT_EQ(rows[3][2].item<double>(), 0.5);
  EXPECT_EQ(rows[2][5 + 0].item<double>(), 1);      // comes in from block 0
  EXPECT_EQ(rows[0][5 + 4 + 2].item<double>(), 1);  // goes out to block 2
}

TEST_F(ProposersTest, LearnedPointsHaveLengthOneAndForetellBetterThanUntrained) {
  Rng rng(5);
  std::vector<Choice> choices;
  std::vector<double> rewards;
  for (int i = 0; i < 40; ++i) {
    choices.push_back(*space.drawn(rng));
    rewards.push_back(reward(choices.back()));
  }
  const auto sequences = block_sequences(space, choices);
  std::vector<int64_t> all(choices.size());
  std::iota(all.begin(), all.end(), 0);
  LearnedEmbeddings embedding(sequences.size(2), {}, {1});
  const auto likelihoods =
      embedding.train(sequences, torch::tensor(rewards, torch::kFloat64), {all});
  EXPECT_GT(likelihoods.back(), likelihoods.front());
  const auto points = embedding.points(0, sequences).detach();
  EXPECT_LT(gap(points.norm(2, -1), torch::ones({40}, torch::kFloat64)), 1e-9);
  EXPECT_GT(torch::linalg_eigvalsh(kernel(points, points, 0.1)).min().item<double>(), -1e-9);
}

TEST_F(ProposersTest, SeveralEmbeddingsLearnTogetherWhatEachLearnsAlone) {
  Rng rng(6);
  std::vector<Choice> choices;
  std::vector<double> rewards;
  for (int i = 0; i < 20; ++i) {
    choices.push_back(*space.drawn(rng));
    rewards.push_back(reward(choices.back()));
  }
  const auto sequences = block_sequences(space, choices);
  const auto values = torch::tensor(rewards, torch::kFloat64);
  EmbeddingOptions options;
  options.most_steps = 4;  // before any of them may stop
  const std::vector<std::vector<int64_t>> parts = {
      {0, 3, 4, 9, 11}, {1, 2, 5, 6, 7, 8, 12, 19}, {10, 13, 14, 15}};
  LearnedEmbeddings together(sequences.size(2), options, {1, 2, 3});
  const auto untrained = together.points(1, sequences).detach();
  together.train(sequences, values, parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    LearnedEmbeddings alone(sequences.size(2), options, {i + 1});
    alone.train(sequences, values, {parts[i]});
    EXPECT_LT(gap(together.points(i, sequences), alone.points(0, sequences)), 1e-5) << i;
  }
  EXPECT_GT(gap(together.points(1, sequences), untrained), 1e-3);
}

TEST_F(ProposersTest, ProposalsAreNewDifferentAndTheSameForASeed) {
  ProposerOptions options;
  options.candidates = 50;
  options.embedding.most_steps = 5;
  std::vector<Outcome> tried;
  for (const Choice& choice : propose(Proposer::kRandom, space, {}, 10, 1)) {
    tried.push_back({choice, reward(choice)});
  }
  ASSERT_EQ(tried.size(), 10U);
  const std::vector<Propose> ways = {
      [&](const auto& known, uint64_t seed) {
        return propose(Proposer::kRandom, space, {known}, 4, seed);
      },
      [&](const auto& known, uint64_t seed) {
        return propose(Proposer::kFeatures, space, {known}, 4, seed, options);
      },
      [&](const auto& known, uint64_t seed) {
        return propose(Proposer::kEmbedding, space, {known}, 4, seed, options);
      }};
  for (const Propose& way : ways) {
    const std::vector<Choice> found = way(tried, 3);
    ASSERT_EQ(found.size(), 4U);
    EXPECT_EQ(found, way(tried, 3));
    EXPECT_NE(found, way(tried, 4));
    for (size_t i = 0; i < found.size(); ++i) {
      for (const Outcome& outcome : tried) EXPECT_NE(found[i], outcome.choice);
      for (size_t j = 0; j < i; ++j) EXPECT_NE(found[i], found[j]);
    }
  }
}

TEST_F(ProposersTest, WhereTooLittleIsKnownTheyAreDrawn) {
  History history;
  for (const Choice& choice : propose(Proposer::kRandom, space, {}, 4, 1)) {
    EXPECT_EQ(way_now(Proposer::kEmbedding, history), Proposer::kRandom);
    EXPECT_EQ(propose(Proposer::kFeatures, space, history, 2, 5),
              propose(Proposer::kRandom, space, history, 2, 5));
    history.tried.push_back({choice, reward(choice)});
  }
  EXPECT_EQ(way_now(Proposer::kEmbedding, history), Proposer::kEmbedding);
}

TEST_F(ProposersTest, EveryNetworkThatIsNotKnownIsProposedOnceAndNothingElse) {
  // One block of one head and the fewest hidden units, or a few more.
  Target limits;
  limits.params = space.least().params + 3000;
  const Exploration few(catalog_spec("vit_mini_28"), limits, {{}, {}});
  const std::vector<Choice> all = propose(Proposer::kRandom, few, {}, 1000, 1);
  ASSERT_GT(all.size(), 12U);
  ASSERT_LT(all.size(), 40U);
  ProposerOptions options;
  options.candidates = 500;
  options.embedding.most_steps = 2;
  for (const Proposer way : {Proposer::kRandom, Proposer::kFeatures, Proposer::kEmbedding}) {
    History history;
    for (size_t i = 0; i < 5; ++i) history.tried.push_back({all[i], reward(all[i])});
    history.pending = {all[5], all[6]};
    const std::vector<Choice> others = propose(way, few, history, 40, 7, options);
    EXPECT_EQ(others.size(), all.size() - 7);
    for (size_t i = 0; i < others.size(); ++i) {
      EXPECT_EQ(std::count(others.begin(), others.end(), others[i]), 1);
      EXPECT_EQ(std::count(all.begin() + 7, all.end(), others[i]), 1);
    }
    history.pending.insert(history.pending.end(), others.begin(), others.end());
    EXPECT_TRUE(propose(way, few, history, 2, 8, options).empty());
  }
}

TEST_F(ProposersTest, TheyCanBeStoppedAtAnyStep) {
  History history;
  for (const Choice& choice : propose(Proposer::kRandom, space, {}, 10, 1)) {
    history.tried.push_back({choice, reward(choice)});
  }
  struct Enough {};
  ProposerOptions options;
  options.candidates = 10;
  int64_t calls = 0;
  options.between = [&] { ++calls; };
  propose(Proposer::kEmbedding, space, history, 2, 1, options);
  EXPECT_GT(calls, 7) << "steps of learning, and two proposals";
  const int64_t all = std::exchange(calls, 0);
  options.between = [&] {
    if (++calls == all / 2) throw Enough{};
  };
  EXPECT_THROW(propose(Proposer::kEmbedding, space, history, 2, 1, options), Enough);
}

TEST_F(ProposersTest, AProcessOnFeaturesBeatsRandomDrawsInEightOfTenSeeds) {
  ProposerOptions options;
  options.candidates = 100;
  int wins = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const double random = best_after(60, seed, [&](const auto& known, uint64_t s) {
      return propose(Proposer::kRandom, space, {known}, 6, s);
    });
    const double bayes = best_after(60, seed, [&](const auto& known, uint64_t s) {
      return propose(Proposer::kFeatures, space, {known}, 6, s, options);
    });
    if (bayes > random) ++wins;
  }
  EXPECT_GE(wins, 8);
}

TEST_F(ProposersTest, AProcessOnLearnedPointsBeatsRandomDrawsOnAverage) {
  ProposerOptions options;
  options.candidates = 100;
  options.embedding.most_steps = 30;
  double gained = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const double random = best_after(40, seed, [&](const auto& known, uint64_t s) {
      return propose(Proposer::kRandom, space, {known}, 4, s);
    });
    const double learned = best_after(40, seed, [&](const auto& known, uint64_t s) {
      return propose(Proposer::kEmbedding, space, {known}, 4, s, options);
    });
    gained += learned - random;
  }
  EXPECT_GT(gained, 0);
}

}  // namespace
}  // namespace adjoin::search
