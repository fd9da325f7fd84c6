#include "adjoin/analysis/laws.h"

#include <fmt/format.h>

#include <cmath>

#include "adjoin/analysis/attention_map.h"
#include "adjoin/analysis/bounds.h"
#include "adjoin/analysis/low_rank.h"
#include "adjoin/analysis/token_rank.h"
#include "adjoin/models/forward.h"
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"
#include "adjoin/nn/shortcut.h"
#include "adjoin/spec/tensors.h"

namespace adjoin::analysis {
namespace {

constexpr double kEpsilon = 0.5;  // of theorem 2.3
constexpr int64_t kTrials = 32;

constexpr const char* kNearestRow =
    "the proof is about the nearest row instead of the mean, and scores that differ by at most "
    "1.256";
constexpr const char* kNoTriangle =
    "the composite form is no norm, so the sum of two terms is not bounded by the proof";

double log_composite(const torch::Tensor& x) {
  return std::log(composite_norm(residual(x)).item<double>());
}

double log_frobenius(const torch::Tensor& x) {
  return std::log(frobenius(residual(x)).item<double>());
}

/// Below this a residual is rounding.
double log_floor(const torch::Tensor& x) {
  const auto tokens = static_cast<double>(x.size(-2));
  return std::log(64 * std::numeric_limits<double>::epsilon() * tokens) +
         std::log(composite_norm(x).item<double>());
}

double to_base_10(double natural) { return natural / std::log(10.0); }

/// Walks a network of one image and compares, block by block.
class LawBook {
 public:
  LawBook(const Network& network, const torch::Tensor& image, uint64_t seed)
      : spec_(network.spec),
        placed_(placed_blocks(spec_)),
        weights_(network.weights.to(image.device(), torch::kFloat64)),
        tokens_(models::embed(spec_, weights_, image.to(torch::kFloat64))),
        seed_(seed) {}

  Laws read() {
    as_it_is();
    if (placed_.empty()) return std::move(found_);
    if (const std::string reason = why_not(); !reason.empty()) {
      found_.notes.push_back(reason);
      return std::move(found_);
    }
    if (!spec_.skips.empty()) {
      found_.notes.emplace_back("skips between blocks are left out of the rows of a stack");
    }
    theorem_2_2_stack();
    shortcut_bounds(/*has_mlps=*/false);
    shortcut_bounds(/*has_mlps=*/true);
    found_.notes.emplace_back(
        "the rows of a stack (2.2 by depth, S.2 to S.8) are of the network without layer norms, "
        "which the proofs do not have; 2.2 by depth is also without MLPs and skips, S.5 without "
        "MLPs");
    return std::move(found_);
  }

 private:
  /// Why the bounds of stacks do not apply; empty: they do.
  std::string why_not() const {
    for (const PlacedBlock& placed : placed_) {
      if (placed.window) {
        return "no bounds on residuals: inside windows, with relative positions added to scores, "
               "the proofs do not hold";
      }
      if (placed.block->mixer.kind != MixerKind::kSoftmax) {
        return fmt::format("no bounds on residuals: {} has mixer {}, they are about softmax",
                           placed.name, enum_name(placed.block->mixer.kind));
      }
    }
    return "";
  }

  void add(LawRow row, double floor = -INFINITY) {
    row.measured = to_base_10(row.measured);
    row.bound = to_base_10(row.bound);
    row.holds = row.measured <= std::max(row.bound + 1e-9, to_base_10(floor));
    found_.bounds.push_back(std::move(row));
  }

  // ---- the network as it is

  void as_it_is() {
    nn::Context context;
    context.block = [&](size_t i, const torch::Tensor& x) {
      const PlacedBlock& placed = placed_[i];
      const auto seen = nn::read_by_attention(placed, spec_.norm_eps, weights_, x, {});
      const auto heads = nn::heads_of(placed, weights_, seen);
      found_.low_rank.push_back(low_rank(placed.name,
                                         attention_map(placed, weights_, heads).weights, kEpsilon,
                                         kTrials, seed_ + i));
      if (!placed.window && placed.block->mixer.kind == MixerKind::kSoftmax) {
        theorem_2_2_layer(placed, seen);
      }
      auto half = nn::settled(nn::attend(placed, spec_.norm_eps, weights_, {x}, {}));
      norm_length(placed, x, seen, half);
      activation_maximum(placed, half);
      const auto y = nn::settled(nn::feed_forward(placed, spec_.norm_eps, weights_, {half}, {}));
      lemma_1(placed, static_cast<int64_t>(i) + 1, y);
      return y;
    };
    models::answer(spec_, weights_, tokens_, context);
  }

  /// One layer of attention, of what it reads.
  void theorem_2_2_layer(const PlacedBlock& placed, const torch::Tensor& seen) {
    const auto given =
        nn::linear(weights_, placed.name + ".attn.proj.", nn::mix(placed, weights_, seen, {}));
    const auto heads = head_matrices(placed, weights_);
    const double factor =
        log_attention_factor(log_beta(heads), placed.block->heads, placed.block->head_dim);
    add({"Theorem 2.2", placed.name, log_composite(given), factor + 3 * log_composite(seen), true,
         false, placed.block->heads == 1 ? kNearestRow : kNoTriangle},
        log_floor(given));
  }

  /// |LN(x)|^2 = d without weight and bias, but for eps.
  void norm_length(const PlacedBlock& placed, const torch::Tensor& x, const torch::Tensor& seen,
                   const torch::Tensor& half) {
    const HalfNorms norms = attention_norms(placed.block->norm);
    const bool is_augmented = placed.block->shortcut.has_value();
    if (placed.window || (norms.after != nullptr && is_augmented)) return;  // not to be seen alone
    const char* which = norms.before != nullptr  ? norms.before
                        : norms.after != nullptr ? norms.after
                                                 : norms.last;
    const auto made = norms.before != nullptr ? seen : norms.after != nullptr ? half - x : half;
    const std::string prefix = placed.name + "." + which;
    const auto weight = nn::vector_of(weights_, prefix + "weight");
    if ((weight.abs() < 1e-12).any().item<bool>()) return;
    const auto plain = (made - nn::vector_of(weights_, prefix + "bias")) / weight;
    const auto length = plain.square().sum(-1).max().item<double>();
    add({"|LN(x)|^2 = d", placed.name, std::log(length),
         std::log(static_cast<double>(placed.embed_dim)), true, true, ""});
  }

  /// The largest unit of the MLP before its activation, of weights and tokens scaled so that each
  /// would be normal at the start. A token keeps the bound with a chance of 0.99; those of an image
  /// are much alike, so the median one is measured.
  void activation_maximum(const PlacedBlock& placed, const torch::Tensor& half) {
    nn::Stream stream{half};
    const auto y = nn::read_by_mlp(placed, spec_.norm_eps, weights_, stream, {});
    const auto w = weights_.at(placed.name + ".mlp.fc1.weight").flatten(0, -2);  // (hidden, C)
    const auto width = static_cast<double>(y.size(-1));
    const auto unit = [](const torch::Tensor& x) {
      return x / x.norm(2, -1, true).clamp_min(std::numeric_limits<double>::min());
    };
    const auto cosine = torch::matmul(unit(y), unit(w).t());
    const auto largest = (cosine.square() * width).amax(-1).flatten();  // of each token
    const auto units = static_cast<double>(w.size(0));
    add({"activation maximum", placed.name, std::log(largest.median().item<double>()),
         std::log(2 * std::log(100 * units)), true, false, "proven for start values"});
  }

  /// E |Y_{l+1}|^2 <= 2 [(2l - 1) d^2 + l d].
  void lemma_1(const PlacedBlock& placed, int64_t number, const torch::Tensor& y) {
    const bool is_meant = placed.block->norm == NormPlacement::kResPost ||
                          placed.block->norm == NormPlacement::kResPostV2;
    if (!is_meant || placed.window) return;
    const auto d = static_cast<double>(placed.embed_dim);
    const auto l = static_cast<double>(number);
    add({"Lemma 1", placed.name, std::log(y.square().sum(-1).mean().item<double>()),
         std::log(2 * ((2 * l - 1) * d * d + l * d)), true, false,
         "proven for start values; a step of the proof is false, its end is not"});
  }

  // ---- without norms

  /// Attention alone: from the input to every depth.
  void theorem_2_2_stack() {
    nn::Context context;
    context.has_norms = context.has_mlps = context.has_skips = false;
    auto x = tokens_;
    const double start = log_composite(x);
    double factor = -INFINITY;
    bool is_single = true;
    for (size_t i = 0; i < placed_.size(); ++i) {
      const BlockSpec& block = *placed_[i].block;
      is_single = is_single && block.heads == 1;
      factor = std::max(factor, log_attention_factor(log_beta(head_matrices(placed_[i], weights_)),
                                                     block.heads, block.head_dim));
      x = nn::settled(nn::attend(without_shortcut(i), spec_.norm_eps, weights_, {x}, context));
      add({"Theorem 2.2 by depth", placed_[i].name, log_composite(x),
           log_stack_bound(factor, start, static_cast<int64_t>(i) + 1), true, false,
           is_single ? kNearestRow : kNoTriangle},
          log_floor(x));
    }
  }

  PlacedBlock without_shortcut(size_t i) {
    PlacedBlock placed = placed_[i];
    bare_ = *placed.block;
    bare_.shortcut.reset();
    placed.block = &bare_;
    return placed;
  }

  void shortcut_bounds(bool has_mlps) {
    nn::Context context;
    context.has_norms = false;
    context.has_mlps = has_mlps;
    const char* by_depth = has_mlps ? "S.8" : "S.5";
    auto x = tokens_;
    const double start = log_composite(x);
    double recursion = start;
    std::vector<BlockFactors> factors;
    for (const PlacedBlock& placed : placed_) {
      const BlockFactors& here = factors.emplace_back(block_factors(placed, weights_, has_mlps));
      if (!has_mlps) branch_bounds(placed, x);
      const auto half = nn::settled(nn::attend(placed, spec_.norm_eps, weights_, {x}, context));
      if (!has_mlps) {
        add({"S.4", placed.name, log_composite(half), log_after_attention(here, log_composite(x)),
             true, false, kNoTriangle},
            log_floor(half));
      }
      x = nn::settled(nn::feed_forward(placed, spec_.norm_eps, weights_, {half}, context));
      if (has_mlps) mlp_bounds(placed, here, half, x);
      recursion = log_recursion(here, recursion);
      add({fmt::format("{} by recursion", by_depth), placed.name, log_composite(x), recursion, true,
           false, kNoTriangle},
          log_floor(x));
      add({fmt::format("{} closed form over recursion", by_depth), placed.name, recursion,
           log_closed_form(factors, start), true, true, "with the largest factors of all blocks"});
    }
  }

  /// Sum of lambda |Theta| over the branches of a shortcut, spectral.
  double shortcut_slope(const PlacedBlock& placed, const char* which) const {
    const auto& shortcut = placed.block->shortcut;
    if (!shortcut || shortcut->branches == 0) return 0;
    double slope = 0;
    for (const auto& matrix : branch_matrices(placed, weights_, which)) {
      slope += (shortcut->has_gelu ? kGeluSlope : 1) * singular_values(matrix)[0].item<double>();
    }
    return slope;
  }

  /// S.2, in the norm whose argmin is the mean and which is one.
  void branch_bounds(const PlacedBlock& placed, const torch::Tensor& x) {
    const double slope = shortcut_slope(placed, kShortcuts[0]);
    if (slope == 0) return;
    const auto given = nn::shortcut_branches(weights_, placed.name + "." + kShortcuts[0] + ".",
                                             *placed.block->shortcut, x);
    add({"S.2 in Frobenius", placed.name, log_frobenius(given), std::log(slope) + log_frobenius(x),
         true, true, ""},
        log_floor(given));
  }

  /// S.6 in both forms.
  void mlp_bounds(const PlacedBlock& placed, const BlockFactors& factors, const torch::Tensor& half,
                  const torch::Tensor& x) {
    add({"S.6", placed.name, log_composite(x), log_after_mlp(factors, log_composite(half)), true,
         false, "the mean token is not the composite form's own minimum"},
        log_floor(x));
    const auto norm = [&](const char* name) {
      return singular_values(weights_.at(placed.name + name).flatten(0, -2))[0].item<double>();
    };
    const double slope = 1 + shortcut_slope(placed, kShortcuts[1]) +
                         kGeluSlope * norm(".mlp.fc1.weight") * norm(".mlp.fc2.weight");
    add({"S.6 in Frobenius", placed.name, log_frobenius(x),
         std::log(factors.mlp_scale * slope) + log_frobenius(half), true, true, ""},
        log_floor(x));
  }

  const ModelSpec& spec_;
  std::vector<PlacedBlock> placed_;
  Weights weights_;
  torch::Tensor tokens_;
  uint64_t seed_;
  BlockSpec bare_;
  Laws found_;
};

}  // namespace

Laws laws(const Network& network, const torch::Tensor& image, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  return LawBook(network, image, seed).read();
}

Json to_json(const Laws& laws) {
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json bounds = Json::array();
  for (const LawRow& row : laws.bounds) {
    bounds.push_back({{"law", row.law},
                      {"layer", row.layer},
                      {"measured_log10", finite(row.measured)},
                      {"bound_log10", finite(row.bound)},
                      {"margin_log10", finite(row.margin())},
                      {"holds", row.holds},
                      {"is_proven", row.is_proven},
                      {"note", row.note}});
  }
  Json low_rank = Json::array();
  for (const LowRankRow& row : laws.low_rank) {
    low_rank.push_back({{"layer", row.layer},
                        {"tokens", row.tokens},
                        {"epsilon", row.epsilon},
                        {"k", row.k},
                        {"success_gaussian", row.success_gaussian},
                        {"success_positive", row.success_positive},
                        {"rank_99", row.rank_99},
                        {"svd_error", row.svd_error}});
  }
  return {{"bounds", bounds}, {"low_rank", low_rank}, {"notes", laws.notes}};
}

}  // namespace adjoin::analysis
