#include "adjoin/search/proposers.h"

#include <algorithm>
#include <functional>

#include "adjoin/search/expected_improvement.h"

namespace adjoin::search {
namespace {

constexpr size_t kLeastKnown = 4;  // before that there is nothing to learn from
constexpr size_t kParents = 8;     // the best so far, whose changes are candidates

bool is_among(const Choice& choice, const std::vector<Choice>& others) {
  return std::find(others.begin(), others.end(), choice) != others.end();
}

std::vector<Choice> choices_of(const std::vector<Outcome>& tried) {
  std::vector<Choice> choices;
  for (const Outcome& outcome : tried) choices.push_back(outcome.choice);
  return choices;
}

torch::Tensor rewards_of(const std::vector<Outcome>& tried) {
  std::vector<double> rewards;
  for (const Outcome& outcome : tried) rewards.push_back(outcome.reward);
  return torch::tensor(rewards, torch::kFloat64);
}

/// New networks to choose from: drawn anew, and changes of the best.
std::vector<Choice> pool_of(const Exploration& space, const std::vector<Outcome>& tried,
                            const std::vector<Choice>& known, const ProposerOptions& options,
                            Rng& rng) {
  std::vector<const Outcome*> best;
  for (const Outcome& outcome : tried) best.push_back(&outcome);
  std::stable_sort(best.begin(), best.end(),
                   [](const Outcome* a, const Outcome* b) { return a->reward > b->reward; });
  best.resize(std::min(best.size(), kParents));
  std::vector<Choice> pool;
  for (int64_t i = 0; i < options.candidates; ++i) {
    const bool is_change = !best.empty() && rng.chance(options.mutated);
    const auto found =
        is_change
            ? space.changed(best[static_cast<size_t>(rng.below(std::ssize(best)))]->choice, rng)
            : space.drawn(rng);
    if (found && !is_among(*found, known)) pool.push_back(*found);
  }
  return pool;
}

/// Every other one at random, at least a few.
std::vector<Outcome> half_of(const std::vector<Outcome>& tried, Rng& rng) {
  std::vector<Outcome> half;
  for (const Outcome& outcome : tried) {
    if (rng.chance(0.5)) half.push_back(outcome);
  }
  return half.size() < kLeastKnown ? tried : half;
}

using Points = std::function<torch::Tensor(const torch::Tensor& sequences)>;

/// What the process on `known` says of the pool.
torch::Tensor promise(const Exploration& space, const Points& points, const ProcessOptions& process,
                      const std::vector<Outcome>& known, const std::vector<Choice>& pool) {
  const torch::NoGradGuard no_grad;
  const auto values = rewards_of(known);
  const GaussianProcess expected(points(block_sequences(space, choices_of(known))), values,
                                 process);
  const Posterior posterior = expected.at(points(block_sequences(space, pool)));
  return log_expected_improvement(posterior.mean, posterior.variance.sqrt(),
                                  values.max().item<double>());
}

/// One network at a time, each by `points_for` what one kernel knows.
std::vector<Choice> propose(
    const Exploration& space, const std::vector<Outcome>& tried, int64_t count, uint64_t seed,
    const ProposerOptions& options,
    const std::function<Points(const std::vector<Outcome>& known, uint64_t seed)>& points_for) {
  if (tried.size() < kLeastKnown) return propose_at_random(space, tried, count, seed);
  std::vector<Choice> known = choices_of(tried);
  std::vector<Choice> proposed;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t key = stream_key(seed, {tried.size(), static_cast<uint64_t>(i)});
    Rng rng(key);
    const std::vector<Outcome> half = half_of(tried, rng);
    const std::vector<Choice> pool = pool_of(space, tried, known, options, rng);
    if (pool.empty()) break;
    const auto gain = promise(space, points_for(half, key), options.embedding.process, half, pool);
    proposed.push_back(pool[static_cast<size_t>(gain.argmax().item<int64_t>())]);
    known.push_back(proposed.back());
  }
  return proposed;
}

}  // namespace

std::vector<Choice> propose_at_random(const Exploration& space, const std::vector<Outcome>& tried,
                                      int64_t count, uint64_t seed) {
  constexpr int64_t kMostTries = 100;
  std::vector<Choice> known = choices_of(tried);
  std::vector<Choice> proposed;
  Rng rng(stream_key(seed, {tried.size()}));
  for (int64_t i = 0; i < kMostTries * count && std::ssize(proposed) < count; ++i) {
    const auto found = space.drawn(rng);
    if (!found || is_among(*found, known)) continue;
    known.push_back(*found);
    proposed.push_back(*found);
  }
  return proposed;
}

std::vector<Choice> propose_by_features(const Exploration& space, const std::vector<Outcome>& tried,
                                        int64_t count, uint64_t seed,
                                        const ProposerOptions& options) {
  return propose(space, tried, count, seed, options,
                 [](const std::vector<Outcome>&, uint64_t) { return Points(plain_points); });
}

std::vector<Choice> propose_by_embedding(const Exploration& space,
                                         const std::vector<Outcome>& tried, int64_t count,
                                         uint64_t seed, const ProposerOptions& options) {
  return propose(
      space, tried, count, seed, options, [&](const std::vector<Outcome>& known, uint64_t key) {
        const auto sequences = block_sequences(space, choices_of(known));
        auto embedding =
            std::make_shared<LearnedEmbedding>(sequences.size(2), options.embedding, key);
        embedding->train(sequences, rewards_of(known));
        return Points([embedding](const torch::Tensor& x) { return (*embedding)(x); });
      });
}

}  // namespace adjoin::search
