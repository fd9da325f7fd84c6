#include "adjoin/search/fit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace adjoin::search {
namespace {

constexpr int64_t kStep = 8;      // hidden units are cut and added by this many
constexpr double kNear = 0.99;    // of the target: close enough
constexpr double kMostCut = 1.1;  // of the target: what may be cut away

/// Some candidates of the first blocks.
struct Partial {
  double score = 0;
  Price price;
  Price least;  // when all that may be cut is cut
  std::vector<size_t> picks;
};

/// Fewest hidden units of a block that stays in the space.
int64_t floor_of(const Space& space, const Choice& everything, size_t block) {
  return everything.blocks[block].hidden / space.alphas()[block].back();
}

/// The best ways to spend, from little to much: per small range of prices the one with the largest
/// score.
std::vector<Partial> best_partials(const Space& space, const Scores& scores, const Target& target) {
  constexpr double kRanges = 2000;  // per target
  const Choice everything = keep_everything(space.large());
  std::vector<Partial> partials = {{0, space.rest(), space.rest(), {}}};
  for (size_t i = 0; i < space.blocks(); ++i) {
    std::map<std::pair<int64_t, int64_t>, Partial> best;
    const int64_t floor = floor_of(space, everything, i);
    for (const Partial& before : partials) {
      for (size_t j = 0; j < space.alphas()[i].size(); ++j) {
        Partial next = before;
        next.score += scores[i][j];
        next.price += space.price(i, j);
        const int64_t spare = everything.blocks[i].hidden / space.alphas()[i][j] - floor;
        next.least += space.price(i, j) + space.unit_price(i) * -(spare / kStep * kStep);
        next.picks.push_back(j);
        const auto range = [&](const std::optional<int64_t>& limit, int64_t amount) {
          if (!limit) return int64_t{0};
          return static_cast<int64_t>(kRanges * static_cast<double>(amount) /
                                      static_cast<double>(*limit));
        };
        const std::pair key(range(target.macs, next.price.macs),
                            range(target.params, next.price.params) / (target.macs ? 20 : 1));
        const auto [place, is_new] = best.try_emplace(key, next);
        if (!is_new && next.score > place->second.score) place->second = std::move(next);
      }
    }
    partials.clear();
    for (auto& [key, partial] : best) partials.push_back(std::move(partial));
  }
  return partials;
}

std::vector<size_t> best_picks(const Space& space, const Scores& scores, const Target& target) {
  if (!target.is_stated()) {
    std::vector<size_t> picks;
    for (const auto& block : scores) {
      picks.push_back(
          static_cast<size_t>(std::max_element(block.begin(), block.end()) - block.begin()));
    }
    return picks;
  }
  const std::vector<Partial> partials = best_partials(space, scores, target);
  const Partial* best = nullptr;
  const auto offer = [&](const Partial& partial) {
    if (best == nullptr || partial.score > best->score) best = &partial;
  };
  for (const Partial& partial : partials) {
    const double share = target.share(partial.price);
    if (share >= kNear && share <= kMostCut && target.share(partial.least) <= 1) offer(partial);
  }
  if (best != nullptr) return best->picks;
  for (const Partial& partial : partials) {  // the most expensive one that can be afforded
    if (target.share(partial.price) > 1) continue;
    if (best == nullptr || target.share(partial.price) > target.share(best->price)) best = &partial;
  }
  if (best != nullptr) return best->picks;
  std::vector<size_t> smallest;
  for (const auto& alphas : space.alphas()) smallest.push_back(alphas.size() - 1);
  return smallest;
}

/// Block numbers, the least important first.
std::vector<size_t> by_importance(const std::vector<double>& importance) {
  std::vector<size_t> order(importance.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return importance[a] < importance[b]; });
  return order;
}

/// Steps of units of a block that have to go so that a price fits.
int64_t steps_to_cut(const Target& target, const Price& price, const Price& unit) {
  int64_t steps = 0;
  const auto add = [&](const std::optional<int64_t>& limit, int64_t amount, int64_t each) {
    if (!limit || amount <= *limit || each == 0) return;
    const int64_t step = each * kStep;
    steps = std::max(steps, (amount - *limit + step - 1) / step);
  };
  add(target.macs, price.macs, unit.macs);
  add(target.params, price.params, unit.params);
  return steps;
}

/// Steps of units of a block that can be paid for.
int64_t steps_to_add(const Target& target, const Price& price, const Price& unit) {
  int64_t steps = std::numeric_limits<int64_t>::max();
  const auto add = [&](const std::optional<int64_t>& limit, int64_t amount, int64_t each) {
    if (!limit) return;
    const int64_t step = std::max<int64_t>(each * kStep, 1);
    steps = std::min(steps, std::max<int64_t>(*limit - amount, 0) / step);
  };
  add(target.macs, price.macs, unit.macs);
  add(target.params, price.params, unit.params);
  return steps;
}

/// Cuts units, block after block, down to floors.
void cut(const Space& space, const Target& target, const std::vector<size_t>& order,
         const std::vector<int64_t>& floors, Fitted& fitted) {
  for (const size_t i : order) {
    int64_t& hidden = fitted.choice.blocks[i].hidden;
    const int64_t possible = std::max<int64_t>(hidden - floors[i], 0) / kStep;
    const int64_t steps =
        std::min(possible, steps_to_cut(target, fitted.price, space.unit_price(i)));
    hidden -= steps * kStep;
    fitted.price += space.unit_price(i) * (-steps * kStep);
  }
}

void add(const Space& space, const Target& target, const std::vector<size_t>& order,
         const std::vector<int64_t>& ceilings, Fitted& fitted) {
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    int64_t& hidden = fitted.choice.blocks[*i].hidden;
    const int64_t possible = std::max<int64_t>(ceilings[*i] - hidden, 0) / kStep;
    const int64_t steps =
        std::min(possible, steps_to_add(target, fitted.price, space.unit_price(*i)));
    hidden += steps * kStep;
    fitted.price += space.unit_price(*i) * (steps * kStep);
  }
}

std::vector<int64_t> hidden_of(const Choice& choice) {
  std::vector<int64_t> hidden;
  for (const BlockChoice& block : choice.blocks) hidden.push_back(block.hidden);
  return hidden;
}

void note_trims(const Space& space, const std::vector<int64_t>& before, Fitted& fitted) {
  for (size_t i = 0; i < before.size(); ++i) {
    const int64_t now = fitted.choice.blocks[i].hidden;
    if (now != before[i]) fitted.trims.push_back({space.names()[i], before[i], now});
  }
}

}  // namespace

Fitted fitted_as(const Space& space, const Choice& choice) {
  Fitted fitted{{}, choice, {}, space.price(choice)};
  const Choice everything = keep_everything(space.large());
  std::vector<int64_t> before;
  for (size_t i = 0; i < space.blocks(); ++i) {
    fitted.alphas.push_back(everything.blocks[i].heads / choice.blocks[i].heads);
    before.push_back(everything.blocks[i].hidden / fitted.alphas.back());
  }
  note_trims(space, before, fitted);
  return fitted;
}

Fitted fit(const Space& space, const Scores& scores, const std::vector<double>& importance,
           const Target& target) {
  const std::vector<size_t> picks = best_picks(space, scores, target);
  Fitted fitted{space.alphas_of(picks), space.choice(picks), {}, {}};
  fitted.price = space.price(fitted.choice);
  if (!target.is_stated()) return fitted;
  const std::vector<int64_t> before = hidden_of(fitted.choice);
  const std::vector<int64_t> whole = hidden_of(keep_everything(space.large()));
  const std::vector<size_t> order = by_importance(importance);
  // At first no block loses more than the step to its next candidate would take.
  std::vector<int64_t> next;
  std::vector<int64_t> last;
  for (size_t i = 0; i < space.blocks(); ++i) {
    const auto& alphas = space.alphas()[i];
    next.push_back(whole[i] / alphas[std::min(picks[i] + 1, alphas.size() - 1)]);
    last.push_back(whole[i] / alphas.back());
  }
  cut(space, target, order, next, fitted);
  cut(space, target, order, last, fitted);
  // What the last step cut too much, and a choice that was below the target from the start.
  add(space, target, order, before, fitted);
  if (target.share(fitted.price) < kNear) add(space, target, order, whole, fitted);
  note_trims(space, before, fitted);
  return fitted;
}

namespace {

/// Factors that are legal in every block, rising.
std::vector<int64_t> common_alphas(const Space& space) {
  std::vector<int64_t> common = space.alphas().front();
  for (const auto& alphas : space.alphas()) {
    std::erase_if(common, [&](int64_t alpha) {
      return std::find(alphas.begin(), alphas.end(), alpha) == alphas.end();
    });
  }
  return common;
}

/// Changes the hidden units of all blocks in turn by one step at a time, as far as `may_change`
/// lets.
template <class MayChange>
void change_evenly(const Space& space, int64_t step, Fitted& fitted, MayChange may_change) {
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (size_t i = 0; i < space.blocks(); ++i) {
      int64_t& hidden = fitted.choice.blocks[i].hidden;
      const Price next = fitted.price + space.unit_price(i) * step;
      if (!may_change(i, hidden + step, next)) continue;
      hidden += step;
      fitted.price = next;
      is_changed = true;
    }
  }
}

}  // namespace

std::optional<Fitted> fit_evenly(const Space& space, const Target& target) {
  const std::vector<int64_t> whole = hidden_of(keep_everything(space.large()));
  std::vector<int64_t> alphas = common_alphas(space);
  for (auto alpha = alphas.rbegin(); alpha != alphas.rend();
       ++alpha) {  // the smallest network first
    Fitted fitted{std::vector<int64_t>(space.blocks(), *alpha),
                  choice_from_alphas(space.large(), {*alpha}),
                  {},
                  {}};
    fitted.price = space.price(fitted.choice);
    const std::vector<int64_t> before = hidden_of(fitted.choice);
    const bool is_last = alpha + 1 == alphas.rend();
    if (target.share(fitted.price) < kNear && !is_last) {
      // The next factor is the better start, unless its heads alone cost too much.
      Choice thin = choice_from_alphas(space.large(), {*(alpha + 1)});
      for (BlockChoice& block : thin.blocks) block.hidden = std::min(block.hidden, kStep);
      if (target.share(space.price(thin)) <= 1) continue;
    }
    change_evenly(space, -kStep, fitted, [&](size_t, int64_t hidden, const Price&) {
      return target.share(fitted.price) > 1 && hidden >= kStep;
    });
    change_evenly(space, kStep, fitted, [&](size_t i, int64_t hidden, const Price& price) {
      return target.share(price) <= 1 && hidden <= whole[i];
    });
    if (target.share(fitted.price) > 1) break;
    note_trims(space, before, fitted);
    return fitted;
  }
  return std::nullopt;
}

}  // namespace adjoin::search
