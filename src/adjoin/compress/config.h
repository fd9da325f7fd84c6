#pragma once

// Everything a user can say about a compression: which small networks, how they are taught, and all
// of a training run.

#include <string>
#include <vector>

#include "adjoin/compress/adjoined.h"
#include "adjoin/compress/importance.h"
#include "adjoin/spec/derive.h"
#include "adjoin/train/config.h"

namespace adjoin::compress {

struct CompressConfig {
  CompressConfig() { train.reset_head = false; }

  std::vector<int64_t> alpha;
  std::string alphas;
  double keep = 0;
  Geometry geometry = Geometry::kKept;
  Order order = Order::kNone;
  int64_t order_images = 256;
  bool separate_norms = false;
  AdjoinedOptions adjoined;
  double stop_when_within = 0;
  train::TrainConfig train;
};

template <class Visitor>
void fields(Visitor& visit, CompressConfig& config) {
  visit("alpha", config.alpha, Range{1, 1e6},
        "divide heads and hidden units of every block by this; 2,4,8: three small networks");
  visit("alphas", config.alphas, {},
        "one factor per block, or @FILE.json with a list, an architecture or a spec");
  visit("keep", config.keep, Range{0, 1},
        "keep this share of heads (rounded) and hidden units (a multiple of 8)");
  visit("geometry", config.geometry, {},
        "kept: the residual width stays; narrow: it is divided too, by one alpha");
  visit("order", config.order, {},
        "with --from: put the most important heads and hidden units first, by magnitude or taylor");
  visit("order_images", config.order_images, Range{1, 1e6}, "taylor: measured on so many images");
  visit("separate_norms", config.separate_norms, {},
        "small networks have norms of their own; else they use the large one's");
  fields(visit, config.adjoined);
  visit("stop_when_within", config.stop_when_within, Range{0, 100},
        "end when lambda is full and all small networks are at most so many percent points of top1 "
        "below the large one; 0: off");
  fields(visit, config.train);
}

}  // namespace adjoin::compress
