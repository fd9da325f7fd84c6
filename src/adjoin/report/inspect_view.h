#pragma once

// What a run saw of its layers while it trained: "inspect" of the epochs in log.jsonl.

#include <optional>
#include <string>
#include <vector>

#include "adjoin/core/json.h"

namespace adjoin::report {

/// A layer of a network at one epoch; a number that was none is nothing.
struct LayerView {
  std::string name;
  std::optional<double> residual;  ///< Frobenius, over the tokens' own; 0: they are all alike
  std::optional<double> cosine;    ///< the mean of two tokens
  std::optional<double> rank;      ///< effective
  std::optional<double> gradient;  ///< its norm
};

struct InspectionView {
  int64_t epoch = 0;
  int64_t images = 0;   ///< 0: unknown
  std::string network;  ///< "large", "small-4"
  std::vector<LayerView> layers;
};

/// Of each network in a line of the log; none where nobody looked. Error(kData) of what is no
/// inspection.
std::vector<InspectionView> inspections_of(const Json& line);

/// Inspections as logs hold them: line by line, some damaged.
class InspectionLog {
 public:
  /// Takes what a line holds; one that cannot be read is counted.
  void take(const Json& line, int64_t number);

  /// The sentence about lines that could not be read, if there were any. `file` is the log.
  std::optional<std::string> problem(const std::string& file) const;

  std::vector<InspectionView> all() && { return std::move(all_); }

 private:
  std::vector<InspectionView> all_;
  std::vector<int64_t> damaged_;
};

}  // namespace adjoin::report
