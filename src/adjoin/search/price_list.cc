#include "adjoin/search/price_list.h"

#include "adjoin/core/fields.h"
#include "adjoin/cost/cost.h"
#include "adjoin/spec/derive.h"

namespace adjoin::search {
namespace {

std::vector<Price> block_prices(const ModelSpec& large, const Choice& choice) {
  std::vector<Price> prices;
  for (const BlockCost& block : cost(derive(large, choice, Geometry::kKept).spec).blocks) {
    prices.push_back({block.macs, block.params});
  }
  return prices;
}

/// What one of `count` brings, when the first of them is there anyway.
Price each(const Price& all, const Price& one, int64_t count) {
  if (count == 1) return {};
  return {(all.macs - one.macs) / (count - 1), (all.params - one.params) / (count - 1)};
}

}  // namespace

PriceList::PriceList(const ModelSpec& large) {
  const Choice whole = keep_everything(large);
  const Cost counted = cost(large);
  rest_ = {counted.macs.total(), counted.params};
  for (const BlockCost& block : counted.blocks) rest_ += Price{block.macs, block.params} * -1;
  for (const auto& [name, norm] : kEnumNames<NormPlacement>) {
    Choice least = whole;
    least.skips.clear();
    for (BlockChoice& block : least.blocks) {
      block.heads = 1;
      block.hidden = 1;
      block.norm = norm;
    }
    Choice all_heads = least;
    Choice all_units = least;
    for (size_t i = 0; i < whole.blocks.size(); ++i) {
      all_heads.blocks[i].heads = whole.blocks[i].heads;
      all_units.blocks[i].hidden = whole.blocks[i].hidden;
    }
    const auto one = block_prices(large, least);
    const auto heads = block_prices(large, all_heads);
    const auto units = block_prices(large, all_units);
    for (size_t i = 0; i < one.size(); ++i) {
      const Price head = each(heads[i], one[i], whole.blocks[i].heads);
      const Price unit = each(units[i], one[i], whole.blocks[i].hidden);
      blocks_[norm].push_back({one[i] + head * -1 + unit * -1, head, unit});
    }
  }
  Choice plain = whole;
  plain.skips.clear();
  Choice skipping = plain;
  const std::vector<PlacedBlock> placed = placed_blocks(large);
  for (size_t i = 1; i < placed.size(); ++i) {
    const bool fits =
        placed[i - 1].embed_dim == placed[i].embed_dim && placed[i - 1].tokens == placed[i].tokens;
    const auto to = static_cast<int64_t>(i);
    if (fits) skipping.skips.push_back({to - 1, to, SkipKind::kCirculant});
  }
  const auto without = block_prices(large, plain);
  skips_ = block_prices(large, skipping);
  for (size_t i = 0; i < skips_.size(); ++i) skips_[i] += without[i] * -1;
}

Price PriceList::of(const Choice& choice) const {
  Price sum = rest_;
  for (size_t i = 0; i < choice.blocks.size(); ++i) {
    const BlockChoice& block = choice.blocks[i];
    if (!block.keep) continue;
    const BlockPrice& price = blocks_.at(block.norm)[i];
    sum += price.rest + price.head * block.heads + price.unit * block.hidden;
  }
  for (const Skip& skip : choice.skips) {
    if (skip.kind == SkipKind::kCirculant) sum += skips_[static_cast<size_t>(skip.to)];
  }
  return sum;
}

}  // namespace adjoin::search
