#include "adjoin/search/trials.h"

#include <algorithm>

#include "adjoin/core/rng.h"

namespace adjoin::search {
namespace {

constexpr uint64_t kStream = 0x747269616c;
constexpr int64_t kTournament = 3;  // of which so many are compared
constexpr int kAttempts = 50;       // to find one that was not tried yet

Scores random_scores(const Space& space, Rng& rng) {
  Scores scores;
  for (const auto& alphas : space.alphas()) {
    scores.emplace_back();
    for (size_t j = 0; j < alphas.size(); ++j) scores.back().push_back(rng.uniform());
  }
  return scores;
}

std::vector<double> random_order(const Space& space, Rng& rng) {
  std::vector<double> order;
  for (size_t i = 0; i < space.blocks(); ++i) order.push_back(rng.uniform());
  return order;
}

bool is_new(const Fitted& fitted, const std::vector<Trial>& tried) {
  return std::none_of(tried.begin(), tried.end(),
                      [&](const Trial& trial) { return trial.fitted.choice == fitted.choice; });
}

/// Draws until something new comes.
template <class Draw>
Fitted first_new(uint64_t seed, const std::vector<Trial>& tried, Draw draw) {
  Rng rng(stream_key(seed, {kStream, tried.size()}));
  Fitted fitted = draw(rng);
  for (int i = 1; i < kAttempts && !is_new(fitted, tried); ++i) fitted = draw(rng);
  return fitted;
}

/// What a parent chose scores 1; in one or two blocks something else scores 2.
Scores changed_scores(const Space& space, const Fitted& parent, Rng& rng) {
  constexpr double kJitter = 0.1;  // decides between ways to pay for the change
  Scores scores = random_scores(space, rng);
  std::vector<size_t> changeable;
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto& alphas = space.alphas()[i];
    if (alphas.size() > 1) changeable.push_back(i);
    for (size_t j = 0; j < alphas.size(); ++j) {
      scores[i][j] = kJitter * scores[i][j] + (alphas[j] == parent.alphas[i] ? 1 : 0);
    }
  }
  const int64_t changes = changeable.empty() ? 0 : 1 + rng.below(2);
  for (int64_t k = 0; k < changes; ++k) {
    const size_t block =
        changeable[static_cast<size_t>(rng.below(static_cast<int64_t>(changeable.size())))];
    const auto& alphas = space.alphas()[block];
    auto other = static_cast<size_t>(rng.below(static_cast<int64_t>(alphas.size()) - 1));
    const auto own = static_cast<size_t>(
        std::find(alphas.begin(), alphas.end(), parent.alphas[block]) - alphas.begin());
    if (other >= own) ++other;
    scores[block][other] += 2;
  }
  return scores;
}

}  // namespace

Fitted random_proposal(const Space& space, const Target& target, uint64_t seed,
                       const std::vector<Trial>& tried) {
  return first_new(seed, tried, [&](Rng& rng) {
    const Scores scores = random_scores(space, rng);
    return fit(space, scores, random_order(space, rng), target);
  });
}

Fitted evolved_proposal(const Space& space, const Target& target, uint64_t seed,
                        const std::vector<Trial>& tried) {
  if (static_cast<int64_t>(tried.size()) < kPopulation)
    return random_proposal(space, target, seed, tried);
  return first_new(seed, tried, [&](Rng& rng) {
    const Trial* parent = nullptr;
    for (int64_t i = 0; i < kTournament; ++i) {
      const auto back = static_cast<size_t>(rng.below(kPopulation));
      const Trial& drawn = tried[tried.size() - 1 - back];
      if (parent == nullptr || drawn.worth > parent->worth) parent = &drawn;
    }
    const Scores scores = changed_scores(space, parent->fitted, rng);
    return fit(space, scores, random_order(space, rng), target);
  });
}

const Trial& best(const std::vector<Trial>& tried) {
  return *std::max_element(tried.begin(), tried.end(),
                           [](const Trial& a, const Trial& b) { return a.worth < b.worth; });
}

}  // namespace adjoin::search
