#include "adjoin/search/proposers.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "adjoin/core/error.h"
#include "adjoin/search/expected_improvement.h"

namespace adjoin::search {
namespace {

constexpr size_t kLeastKnown = 4;     // before that there is nothing to learn from
constexpr double kMostLearned = 250;  // about so many by one kernel
constexpr size_t kParents = 8;        // the best so far, whose changes are candidates

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

/// Every other one at random, at least a few and never more than can be learned in seconds: which
/// ones.
std::vector<int64_t> part_of(int64_t count, Rng& rng) {
  const double share = std::min(0.5, kMostLearned / static_cast<double>(count));
  std::vector<int64_t> half;
  for (int64_t i = 0; i < count; ++i) {
    if (rng.chance(share)) half.push_back(i);
  }
  if (half.size() >= kLeastKnown) return half;
  half.resize(static_cast<size_t>(count));
  std::iota(half.begin(), half.end(), 0);
  return half;
}

/// What was tried, for the processes of one batch.
struct Known {
  torch::Tensor sequences;  ///< (n, blocks, features)
  torch::Tensor rewards;    ///< (n)
};

/// One of the kernels of a batch: which part of the known it sees, and how it sees networks.
struct Kernel {
  Rng rng;
  std::vector<int64_t> part;
  std::function<torch::Tensor(const torch::Tensor& sequences)> points = plain_points;
};

/// One for each key of a stream of random numbers, on points made by hand or learned.
std::vector<Kernel> kernels_of(bool is_learned, const Known& known,
                               const std::vector<uint64_t>& keys, const ProposerOptions& options) {
  std::vector<Kernel> kernels;
  std::vector<std::vector<int64_t>> parts;
  for (const uint64_t key : keys) {
    Rng rng(key);
    parts.push_back(part_of(known.rewards.size(0), rng));
    kernels.push_back({rng, parts.back()});
  }
  if (!is_learned) return kernels;
  auto embeddings =
      std::make_shared<LearnedEmbeddings>(known.sequences.size(2), options.embedding, keys);
  embeddings->train(known.sequences, known.rewards, parts, options.between);
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].points = [embeddings, i](const auto& x) { return embeddings->points(i, x); };
  }
  return kernels;
}

/// What the process of a kernel says of networks.
torch::Tensor promise(const Kernel& kernel, const Known& known, const torch::Tensor& networks,
                      const ProcessOptions& options) {
  const torch::NoGradGuard no_grad;
  const auto part = torch::tensor(kernel.part, torch::kInt64);
  const auto rewards = known.rewards.index_select(0, part);
  const GaussianProcess expected(kernel.points(known.sequences.index_select(0, part)), rewards,
                                 options);
  const Posterior posterior = expected.at(kernel.points(networks));
  return log_expected_improvement(posterior.mean, posterior.variance.sqrt(),
                                  rewards.max().item<double>());
}

std::vector<Choice> all_known(const History& known) {
  std::vector<Choice> choices = choices_of(known.tried);
  choices.insert(choices.end(), known.pending.begin(), known.pending.end());
  return choices;
}

std::vector<Choice> drawn(const Exploration& space, const History& history, int64_t count,
                          uint64_t seed) {
  constexpr int64_t kMostTries = 100;
  std::vector<Choice> known = all_known(history);
  std::vector<Choice> proposed;
  Rng rng(stream_key(seed, {history.size()}));
  for (int64_t i = 0; i < kMostTries * count && std::ssize(proposed) < count; ++i) {
    const auto found = space.drawn(rng);
    if (!found || is_among(*found, known)) continue;
    known.push_back(*found);
    proposed.push_back(*found);
  }
  return proposed;
}

/// By Gaussian processes.
std::vector<Choice> foretold(bool is_learned, const Exploration& space, const History& history,
                             int64_t count, uint64_t seed, const ProposerOptions& options) {
  const Known known = {block_sequences(space, choices_of(history.tried)),
                       rewards_of(history.tried)};
  std::vector<uint64_t> keys;
  for (int64_t i = 0; i < count; ++i) {
    keys.push_back(stream_key(seed, {history.size(), static_cast<uint64_t>(i)}));
  }
  std::vector<Choice> taken = all_known(history);
  std::vector<Choice> proposed;
  for (Kernel& kernel : kernels_of(is_learned, known, keys, options)) {
    options.between();
    const std::vector<Choice> pool = pool_of(space, history.tried, taken, options, kernel.rng);
    if (pool.empty()) break;
    const auto gain =
        promise(kernel, known, block_sequences(space, pool), options.embedding.process);
    proposed.push_back(pool[static_cast<size_t>(gain.argmax().item<int64_t>())]);
    taken.push_back(proposed.back());
  }
  return proposed;
}

}  // namespace

Proposer way_now(Proposer way, const History& known) {
  return known.tried.size() < kLeastKnown ? Proposer::kRandom : way;
}

std::vector<Choice> propose(Proposer way, const Exploration& space, const History& history,
                            int64_t count, uint64_t seed, const ProposerOptions& options) {
  switch (way_now(way, history)) {
    case Proposer::kRandom: return drawn(space, history, count, seed);
    case Proposer::kFeatures: return foretold(false, space, history, count, seed, options);
    case Proposer::kEmbedding: return foretold(true, space, history, count, seed, options);
  }
  throw Error(ErrorKind::kInternal, "an unknown proposer");
}

}  // namespace adjoin::search
