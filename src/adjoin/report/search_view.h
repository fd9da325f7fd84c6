#pragma once

// The search of a run, as reports and pages see it.

#include <optional>
#include <string>
#include <vector>

#include "adjoin/report/run_view.h"
#include "adjoin/report/study_view.h"

namespace adjoin::report {

/// A block of the mixture: how likely each candidate is, epoch after epoch.
struct MixedBlock {
  std::vector<int64_t> alphas;
  std::vector<std::vector<double>> probabilities;  ///< [epoch][candidate]
};

struct SearchView {
  std::vector<NetworkView> networks;  ///< large, searched, uniform, on the images set aside
  std::vector<MixedBlock> blocks;
  std::vector<std::pair<int64_t, double>> expected_macs;  ///< of the mixture, by epoch
  std::vector<InspectionView> inspections;                ///< of `networks`
  std::vector<NetworkView> trials;                        ///< of random and evolve, in their order
  std::optional<std::pair<ModelSpec, ModelSpec>> found;   ///< the large network and what is kept
  std::optional<StudyView> study;                         ///< of bayes
};

/// What a search left in its folder; nothing of a run of another command. What cannot be read is
/// said in `problems`.
std::optional<SearchView> read_search(const RunView& run, std::vector<std::string>& problems);

}  // namespace adjoin::report
