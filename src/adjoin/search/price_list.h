#pragma once

// What the networks cost that can be made of a large one. Blocks cost what they cost whatever the
// others are, each head and each hidden unit the same: a price is a sum, and a search may ask for
// thousands of them.

#include <map>
#include <vector>

#include "adjoin/search/target.h"
#include "adjoin/spec/choice.h"

namespace adjoin::search {

class PriceList {
 public:
  explicit PriceList(const ModelSpec& large);

  /// The same as cost() of the network that derive() makes, in geometry kept. The mixers of blocks
  /// are those of the large network.
  Price of(const Choice& choice) const;

 private:
  struct BlockPrice {
    Price rest;  ///< of a block without heads and hidden units
    Price head;
    Price unit;
  };

  Price rest_;                                               // all but the blocks
  std::map<NormPlacement, std::vector<BlockPrice>> blocks_;  // of each placement, by block
  std::vector<Price> skips_;                                 // through a shortcut, by where it ends
};

}  // namespace adjoin::search
