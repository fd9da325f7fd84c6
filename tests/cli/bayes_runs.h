#pragma once

// Small searches by --method bayes from end to end.

#include "adjoin/core/place.h"
#include "cli/train_runs.h"

namespace adjoin {

inline Words bayes(const std::string& model, const std::string& output, const Words& more = {}) {
  Words args = {"search",
                "--method",
                "bayes",
                "--model",
                model,
                "--data",
                "synthetic:1x28x28x10x64",
                "--epochs",
                "2",
                "--search-epochs",
                "3",
                "--device",
                "cpu",
                "--output",
                output,
                "--lr",
                "1e-3",
                "--batch-size",
                "16",
                "--warmup-epochs",
                "0",
                "--limit-val",
                "16",
                "--target-macs",
                "0.5x",
                "--trials",
                "5",
                "--proposals",
                "2",
                "--proposer",
                "features",
                "--log-interval",
                "1"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

inline int64_t kept_blocks(const Json& result) {
  int64_t kept = 0;
  for (const Json& block : result.at("architecture").at("blocks")) kept += block.at("keep") ? 1 : 0;
  return kept;
}

inline bool exists(const std::string& path) { return place_at(path) != Place::kNothing; }

}  // namespace adjoin
