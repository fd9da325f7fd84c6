#pragma once

// The search of differentiable adjoined networks (thesis, 3.2 and 3.3). A mixture of small networks
// learns to answer as the large network does, and with it how much of every block it needs:
//
//   loss = CE(labels, p) + lambda(t) (KL(p || q) + gamma n_f)
//
// q is the answer of the mixture, whose shares of a block's candidates are softmax((eta + noise) /
// tau), and n_f the MACs of all blocks by these shares. eta is learned, tau falls over the run.
//
// Where a target is stated, it stands in the place of gamma: the shares are
// softmax((eta - nu prices + noise) / tau), with the one nu per target for which what is picked,
// the largest of eta - nu prices + noise in every block, costs the target on average. nu follows
// eta by one Newton step per training step. So eta learns only what to spend on, never how much.

#include <memory>
#include <vector>

#include "adjoin/compress/adjoined.h"
#include "adjoin/search/fit.h"
#include "adjoin/search/mixture.h"
#include "adjoin/train/trainer.h"

namespace adjoin::search {

enum class NoiseKind {
  kGumbel,        ///< drawn anew in every pass
  kGumbelFrozen,  ///< drawn once, and also used when candidates are picked
  kGaussian,      ///< as the thesis writes; not what softmax(eta) says
};

}  // namespace adjoin::search

namespace adjoin {

template <>
inline constexpr auto kEnumNames<search::NoiseKind> =
    std::to_array<EnumName<search::NoiseKind>>({{"gumbel", search::NoiseKind::kGumbel},
                                                {"gumbel-frozen", search::NoiseKind::kGumbelFrozen},
                                                {"gaussian", search::NoiseKind::kGaussian}});

}  // namespace adjoin

namespace adjoin::search {

struct DanOptions {
  double gamma = 1e-12;
  NoiseKind noise = NoiseKind::kGumbel;
  double tau_start = 15;
  double tau_end = 0.1667;
  double eta_lr_scale = 10;
};

template <class Visitor>
void fields(Visitor& visit, DanOptions& options) {
  visit("gamma", options.gamma, Range{0, 1e30},
        "dan without a target: weight of the mixture's MACs in the loss");
  visit("noise", options.noise, {},
        "dan: gumbel (drawn in every step), gumbel-frozen (once) or gaussian");
  visit("tau_start", options.tau_start, Range{1e-3, 1e3},
        "dan: temperature of the mixture in the first epoch");
  visit("tau_end", options.tau_end, Range{1e-3, 1e3}, "dan: and after the last");
  visit("eta_lr_scale", options.eta_lr_scale, Range{1e-6, 1e6},
        "dan: the mixing weights learn by this factor faster");
}

/// Prices as shares of the targets, and the multipliers that bring picks there on average.
class Budget {
 public:
  Budget(const Space& space, const Target& target, const Mixture& mixture);

  int64_t targets() const { return shares_.size(0); }

  /// eta (blocks, candidates) less what the candidates cost by the multipliers (targets).
  torch::Tensor priced(const torch::Tensor& eta, const torch::Tensor& multipliers) const;

  /// What picks with these probabilities cost on average, as a share of each target: (targets).
  torch::Tensor spent(const torch::Tensor& probabilities) const;

  /// One step of the multipliers towards picks that cost the targets on average. A target that is
  /// not the one that binds may be undercut.
  void adapt(const torch::Tensor& eta, torch::Tensor multipliers) const;

 private:
  torch::Tensor shares_;  // (targets, blocks, candidates), float64
  torch::Tensor rest_;    // (targets): of what lies outside blocks
  torch::Tensor is_legal_;
};

/// What a search has learned so far.
struct Learned {
  torch::Tensor probabilities;  ///< (blocks, candidates), float64, on the CPU
  Fitted fitted;                ///< the network it would hand over now
};

/// All of it that the objective, the run and whoever watches share.
class Dan {
 public:
  /// `searched`: of the network that is trained. `wanted`: of the one that is asked for, which may
  /// know other classes and so cost something else.
  Dan(const Space& searched, Space wanted, const Target& target, const DanOptions& options,
      int64_t seed, torch::Device device);

  const Space& wanted() const { return wanted_; }
  const Target& target() const { return target_; }
  const DanOptions& options() const { return options_; }
  const Mixture& mixture() const { return mixture_; }
  const Budget& budget() const { return budget_; }

  /// The widest network, with the tensors of its own: eta, multipliers, frozen noise.
  train::InnerNetwork network() const;

  /// `network`: the mixture's tensors as they are trained, not averages of them.
  Learned learned(const Weights& network) const;

  /// Of the whole network that is asked for, on average over picks.
  double expected_macs(const torch::Tensor& probabilities) const;

 private:
  Space wanted_;
  Target target_;
  DanOptions options_;
  Mixture mixture_;
  Budget budget_;
  uint64_t seed_;
};

/// The temperature at a time of the run (0-d): falls geometrically.
torch::Tensor temperature(const DanOptions& options, const torch::Tensor& time);

class DanObjective : public train::Objective {
 public:
  DanObjective(std::shared_ptr<const Dan> dan, const compress::AdjoinedOptions& options,
               std::unique_ptr<train::Objective> large, int64_t epochs);

  train::Loss operator()(const std::vector<train::Branch>& networks, const data::Batch& batch,
                         const torch::Tensor& time) const override;
  std::vector<std::string> terms() const override;

 private:
  torch::Tensor noise(const train::Branch& network) const;

  std::shared_ptr<const Dan> dan_;
  compress::AdjoinedOptions options_;
  compress::AdjoinedObjective adjoined_;
  int64_t epochs_;
  torch::Tensor macs_;  // (blocks, candidates), float64
};

}  // namespace adjoin::search
