#include "adjoin/analysis/depth_curves.h"

#include "adjoin/analysis/token_rank.h"
#include "adjoin/models/forward.h"

namespace adjoin::analysis {
namespace {

struct Parts {
  const char* name;
  bool has_mlps = false;
  bool has_norms = false;
  bool has_skips = false;
  bool has_shortcuts = false;
};

constexpr Parts kVariants[] = {
    {.name = "attention"},
    {.name = "attention + MLP", .has_mlps = true},
    {.name = "attention + norm", .has_norms = true},
    {.name = "attention + skip", .has_skips = true},
    {.name = "attention + skip + shortcut", .has_skips = true, .has_shortcuts = true},
    {.name = "whole network",
     .has_mlps = true,
     .has_norms = true,
     .has_skips = true,
     .has_shortcuts = true},
};

ModelSpec without_shortcuts(ModelSpec spec) {
  for_each_block(spec, [](BlockSpec& block) { block.shortcut.reset(); });
  return spec;
}

bool has_shortcuts(const ModelSpec& spec) {
  bool found = false;
  for_each_block(spec, [&](const BlockSpec& block) { found = found || block.shortcut; });
  return found;
}

DepthCurve curve_of(const Parts& parts, const ModelSpec& spec, const Weights& weights,
                    const torch::Tensor& images) {
  DepthCurve curve{parts.name, {}, {}, {}};
  torch::Tensor start;
  const auto take = [&](std::string_view name, const torch::Tensor& x) {
    if (name != "tokens" && name.find("blocks.") == std::string_view::npos) return;
    const auto rest = residual(x);
    const double least = std::numeric_limits<double>::min();
    const auto share = [&](const torch::Tensor& of_rest, const torch::Tensor& of_all) {
      return (of_rest / of_all.clamp_min(least)).mean().item<double>();
    };
    if (!start.defined()) start = frobenius(rest);
    curve.diversity.push_back(share(frobenius(rest), start));
    curve.residual_frobenius.push_back(share(frobenius(rest), frobenius(x)));
    curve.residual_composite.push_back(share(composite_norm(rest), composite_norm(x)));
  };
  nn::Context context;
  context.has_norms = parts.has_norms;
  context.has_mlps = parts.has_mlps;
  context.has_skips = parts.has_skips;
  const auto tokens = models::embed(spec, weights, images);  // the same of all variants
  take("tokens", tokens);
  context.tap = take;
  models::answer(spec, weights, tokens, context);
  return curve;
}

}  // namespace

std::vector<DepthCurve> depth_curves(const Network& network, const torch::Tensor& images_in) {
  const torch::NoGradGuard no_grad;
  const Weights weights = network.weights.to(images_in.device(), torch::kFloat64);
  const auto images = images_in.to(torch::kFloat64);
  const ModelSpec bare = without_shortcuts(network.spec);
  const bool is_augmented = has_shortcuts(network.spec);
  std::vector<DepthCurve> curves;
  for (const Parts& parts : kVariants) {
    const bool is_whole = parts.has_mlps && parts.has_skips;
    if (parts.has_shortcuts && !is_augmented && !is_whole) continue;
    curves.push_back(curve_of(parts, parts.has_shortcuts ? network.spec : bare, weights, images));
  }
  return curves;
}

Json to_json(const std::vector<DepthCurve>& curves) {
  Json all = Json::array();
  for (const DepthCurve& curve : curves) {
    all.push_back({{"name", curve.name},
                   {"diversity", curve.diversity},
                   {"residual_frobenius", curve.residual_frobenius},
                   {"residual_composite", curve.residual_composite}});
  }
  return {{"curves", all}};
}

}  // namespace adjoin::analysis
