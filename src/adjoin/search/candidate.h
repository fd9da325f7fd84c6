#pragma once

// A network that --method bayes tries: the training of a part of the large network as a network of
// its own, taught by the large one, and what it came to.

#include <optional>

#include "adjoin/models/load.h"
#include "adjoin/search/config.h"
#include "adjoin/search/exploration.h"
#include "adjoin/train/job.h"

namespace adjoin::search {

/// The config with what it leaves unsaid: how trials are taught.
SearchConfig with_teaching(SearchConfig config);

/// The file of the large network that --from names, or where that is gone the copy of it that a
/// search made; nothing without --from.
std::string large_file(const SearchConfig& config, const std::string& copy);

/// What may be chosen of the network in `large_file`, or of the one that --model names, and what
/// it may cost. Error(kUsage) when nothing is within the limits.
Exploration exploration(const SearchConfig& config, const std::string& large_file);
inline Exploration exploration(const SearchConfig& config) {
  return exploration(config, config.compress.train.from);
}

/// The training of the large network; where one is given with --from, its weights are the start.
/// Images that the search is judged by are set aside.
train::Job prepare_teacher(const SearchConfig& config, const train::Launch& launch);

/// Which images a network is trained on: all, or those that are not set aside.
enum class Images { kAll, kHeldIn };

/// A trial, for a few epochs, or the whole training of what was found.
enum class Length { kTrial, kWhole };

/// The large network in the file `teacher` with its heads and hidden units as --order says,
/// measured on images that are not set aside.
models::Model ordered(const SearchConfig& config, const std::string& teacher,
                      const train::Launch& launch);

/// A part of the network in the file `teacher`, which is in order: its slices are the start, what
/// it has beyond them starts anew, and the whole network teaches it.
train::Job prepare_student(const SearchConfig& config, const std::string& teacher,
                           const Choice& choice, Length length, Images images,
                           const train::Launch& launch);

/// Together with the large network, as `adjoin compress` does; `teacher` is in order.
train::Job prepare_adjoined(const SearchConfig& config, const std::string& teacher,
                            const Choice& choice, Images images, const train::Launch& launch);

/// How a model file does on the images set aside, or on the validation split.
enum class JudgedBy { kSetAside, kValidation };
train::Evaluation judged(const SearchConfig& config, const std::string& file, JudgedBy by,
                         const train::Launch& launch);

/// Milliseconds of the large network and the one chosen, one image, side by side, on one core:
/// what does not depend on how many processes a search has.
struct Latency {
  double large = 0;
  double small = 0;
};
Latency measured_latency(const Exploration& space, const Choice& choice);

/// The large network's side of rewards.
struct Baseline {
  double top1 = 0;             ///< on the images set aside
  std::vector<double> losses;  ///< by epoch, trained as trials are; of rewards by speed
};

/// What a trial is worth, epoch by epoch.
class Worth {
 public:
  Worth(const SearchConfig& config, const Exploration& space, Baseline baseline);

  RewardCost cost() const { return cost_; }

  /// `losses` and `tops` of the epochs so far, one at least.
  double operator()(const Price& price, const std::optional<Latency>& latency,
                    const std::vector<double>& losses, const std::vector<double>& tops) const;

 private:
  double compression(const Price& price, const std::optional<Latency>& latency) const;
  double speed(const std::vector<double>& losses) const;

  BayesOptions options_;
  Target limits_;
  Price large_;
  Baseline baseline_;
  RewardCost cost_;
};

}  // namespace adjoin::search
