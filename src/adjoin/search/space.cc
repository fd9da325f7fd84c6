#include "adjoin/search/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "adjoin/core/error.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"
#include "adjoin/spec/derive.h"

namespace adjoin::search {
namespace {

constexpr int64_t kMostDefault = 8;  // the largest factor that is tried unasked

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kUsage, message); }

std::vector<int64_t> default_candidates(const ModelSpec& large) {
  int64_t fewest = kMostAttentionDim;
  for_each_block(large, [&](const BlockSpec& block) { fewest = std::min(fewest, block.heads); });
  std::vector<int64_t> result;
  for (int64_t alpha = 1; alpha <= std::min(fewest, kMostDefault); ++alpha) {
    if (fewest % alpha == 0) result.push_back(alpha);
  }
  return result;
}

void check_candidates(const std::vector<int64_t>& candidates) {
  for (const int64_t alpha : candidates) {
    if (alpha < 1) refuse(fmt::format("--candidates: {} is no factor; give 1,2,4,8", alpha));
  }
  if (std::set(candidates.begin(), candidates.end()).size() != candidates.size()) {
    refuse(fmt::format("--candidates: {} names a factor twice", fmt::join(candidates, ",")));
  }
}

Cost cost_of(const ModelSpec& large, const Choice& choice) {
  return cost(derive(large, choice, Geometry::kKept).spec);
}

Price price_of(const BlockCost& block) { return {block.macs, block.params}; }

}  // namespace

Space::Space(ModelSpec large, std::vector<int64_t> candidates) : large_(std::move(large)) {
  check_candidates(candidates);
  if (candidates.empty()) candidates = default_candidates(large_);
  std::sort(candidates.begin(), candidates.end());
  const Choice everything = keep_everything(large_);
  const Cost whole = cost_of(large_, everything);
  Choice thinner = everything;
  for (BlockChoice& block : thinner.blocks) block.hidden = std::max<int64_t>(block.hidden - 1, 1);
  const Cost less = cost_of(large_, thinner);
  rest_ = {whole.macs.total(), whole.params};
  for (const BlockCost& block : whole.blocks) rest_ += price_of(block) * -1;
  const auto placed = placed_blocks(large_);
  for (size_t i = 0; i < placed.size(); ++i) {
    const BlockChoice& block = everything.blocks[i];
    std::vector<int64_t> legal;
    std::vector<int64_t> left_out;
    for (const int64_t alpha : candidates) {
      const bool divides = block.heads % alpha == 0 && block.hidden % alpha == 0;
      (divides ? legal : left_out).push_back(alpha);
    }
    if (legal.empty()) legal = {1};
    if (!left_out.empty()) {
      notes_.push_back(fmt::format(
          "{}: {} {} not divide its {} heads and {} hidden units; it can "
          "have {}",
          placed[i].name, fmt::join(left_out, ", "), left_out.size() == 1 ? "does" : "do",
          block.heads, block.hidden, fmt::join(legal, ", ")));
    }
    names_.push_back(placed[i].name);
    alphas_.push_back(std::move(legal));
    unit_prices_.push_back(price_of(whole.blocks[i]) + price_of(less.blocks[i]) * -1);
  }
  // Blocks cost what they cost whatever the others are: one count for the candidates in one place.
  size_t most = 0;
  for (const auto& alphas : alphas_) most = std::max(most, alphas.size());
  prices_.resize(blocks());
  for (size_t place = 0; place < most; ++place) {
    std::vector<int64_t> alphas;
    for (const auto& legal : alphas_) alphas.push_back(legal[std::min(place, legal.size() - 1)]);
    const Cost counted = cost_of(large_, choice_from_alphas(large_, alphas));
    for (size_t i = 0; i < blocks(); ++i) {
      if (place < alphas_[i].size()) prices_[i].push_back(price_of(counted.blocks[i]));
    }
  }
}

Price Space::price(const Choice& choice) const {
  const Cost counted = cost_of(large_, choice);
  return {counted.macs.total(), counted.params};
}

Price Space::least() const {
  Price sum = rest_;
  for (const auto& prices : prices_) sum += prices.back();
  return sum;
}

Price Space::most() const {
  Price sum = rest_;
  for (const auto& prices : prices_) sum += prices.front();
  return sum;
}

std::vector<int64_t> Space::alphas_of(const std::vector<size_t>& picks) const {
  std::vector<int64_t> alphas;
  for (size_t i = 0; i < blocks(); ++i) alphas.push_back(alphas_[i][picks[i]]);
  return alphas;
}

Choice Space::choice(const std::vector<size_t>& picks) const {
  return choice_from_alphas(large_, alphas_of(picks));
}

std::string feasible_text(const Space& space) {
  const Price least = space.least();
  const Price most = space.most();
  const auto range = [](int64_t low, int64_t high) {
    return short_count(static_cast<double>(low)) + " to " + short_count(static_cast<double>(high));
  };
  return fmt::format("{} can have {} MACs and {} parameters", space.large().name,
                     range(least.macs, most.macs), range(least.params, most.params));
}

void check_feasible(const Space& space, const Target& target) {
  const Price least = space.least();
  const Price most = space.most();
  const Price large = space.price(keep_everything(space.large()));
  const auto check = [&](const char* flag, const std::optional<int64_t>& limit, auto amount) {
    if (!limit || *limit >= amount(least)) return;
    const auto share = [&](const Price& price) {
      return static_cast<double>(amount(price)) / static_cast<double>(amount(large));
    };
    refuse(fmt::format("{}: {} cannot be reached; {}, here {:.3g}x to {:.3g}x", flag,
                       short_count(static_cast<double>(*limit)), feasible_text(space), share(least),
                       share(most)));
  };
  check("--target-macs", target.macs, [](const Price& price) { return price.macs; });
  check("--target-params", target.params, [](const Price& price) { return price.params; });
  if (target.is_stated() && target.share(most) < 1) {
    refuse(fmt::format("{}: the target is above all that can be chosen; {}",
                       target.macs ? "--target-macs" : "--target-params", feasible_text(space)));
  }
}

}  // namespace adjoin::search
