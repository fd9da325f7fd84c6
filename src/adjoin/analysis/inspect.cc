#include "adjoin/analysis/inspect.h"

#include <fmt/format.h>

#include "adjoin/analysis/attention_map.h"
#include "adjoin/analysis/numbers.h"
#include "adjoin/analysis/token_rank.h"
#include "adjoin/core/error.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/models/slice.h"
#include "adjoin/nn/block.h"
#include "adjoin/spec/derive.h"

namespace adjoin::analysis {
namespace {

double mean_of(const torch::Tensor& x) { return x.mean().item<double>(); }

void check_finite(const std::string& name, const torch::Tensor& x) {
  const auto bad = torch::isfinite(x).logical_not().sum().item<int64_t>();
  if (bad == 0) return;
  throw Error(ErrorKind::kNumeric,
              fmt::format("{}: {} of {} activations are not finite", name, bad, x.numel()));
}

/// One pass with everything that is looked at afterwards.
struct Pass {
  std::vector<std::string> names;
  std::vector<torch::Tensor> outputs;
  std::vector<torch::Tensor> inputs;   ///< of each block
  std::vector<torch::Tensor> changed;  ///< what each block makes of its input
  torch::Tensor logits;
};

Pass passed(const Network& network, const Weights& weights, const torch::Tensor& images,
            bool is_brief) {
  Pass pass;
  const auto keep = [&](std::string_view name, const torch::Tensor& value) {
    check_finite(std::string(name), value);
    if (value.size(1) < 2 && is_brief) return;
    if (value.size(1) < 2) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("{}: has one token, must have two at least to be compared", name));
    }
    if (value.requires_grad()) value.retain_grad();
    pass.names.emplace_back(name);
    pass.outputs.push_back(value);
  };
  const std::vector<PlacedBlock> placed = placed_blocks(network.spec);
  nn::Constants constants;
  nn::Context context;
  context.constants = &constants;
  const auto tokens = models::embed(network.spec, weights, images, context);
  keep("tokens", tokens);
  context.tap = keep;
  context.block = [&](size_t i, const torch::Tensor& x) {
    auto y = nn::settled(nn::block(placed[i], network.spec.norm_eps, weights, {x}, context));
    pass.inputs.push_back(x.detach());
    pass.changed.push_back(y.detach());
    return y;
  };
  pass.logits = models::answer(network.spec, weights, tokens, context).logits();
  check_finite("head", pass.logits);
  return pass;
}

/// The weights outside any graph, or as leaves of one; they share memory with the network's.
Weights leaves_of(const Network& network, bool has_gradients) {
  Weights leaves;
  for (const auto& [name, tensor] : network.weights) leaves.set(name, tensor.detach());
  if (has_gradients) models::require_gradients(network.spec, leaves);
  return leaves;
}

LayerReport layer_report(const std::string& name, const torch::Tensor& output,
                         const torch::Tensor& first, int64_t most_images) {
  const auto x = output.detach().to(torch::kFloat64);  // squares of float32 may be too large
  const auto rest = residual(x);
  const auto length = frobenius(rest);
  const auto composite = composite_norm(rest);
  const double least = std::numeric_limits<double>::min();
  LayerReport report;
  report.name = name;
  report.tokens = x.size(1);
  report.width = x.size(2);
  report.residual_frobenius = mean_of(length / frobenius(x).clamp_min(least));
  report.residual_composite = mean_of(composite / composite_norm(x).clamp_min(least));
  const auto start = residual(first.detach().to(torch::kFloat64));
  report.residual_frobenius_of_input = mean_of(length / frobenius(start).clamp_min(least));
  report.residual_composite_of_input = mean_of(composite / composite_norm(start).clamp_min(least));
  report.token_cosine = mean_of(token_cosine(x));
  report.effective_rank = mean_of(effective_rank(x.narrow(0, 0, std::min(most_images, x.size(0)))));
  report.activation_norm = mean_of(x.norm(2, -1));
  if (output.grad().defined())
    report.gradient_norm = output.grad().to(torch::kFloat64).norm().item<double>();
  return report;
}

/// The factor of a block's first part, or 1 where it cannot be divided.
int64_t factor_of(const BlockSpec& block, int64_t wanted) {
  const auto divides = [&](int64_t alpha) {
    return block.heads % alpha == 0 && block.hidden % alpha == 0;
  };
  if (wanted > 0) return divides(wanted) ? wanted : 1;
  for (int64_t alpha = 2; alpha <= block.heads; ++alpha) {
    if (divides(alpha)) return alpha;
  }
  return 1;
}

std::vector<std::optional<FirstPart>> first_parts(const Network& network, const Weights& weights,
                                                  const Pass& pass, int64_t wanted) {
  std::vector<int64_t> alphas;
  for_each_block(network.spec,
                 [&](const BlockSpec& block) { alphas.push_back(factor_of(block, wanted)); });
  const Derived part =
      derive(network.spec, choice_from_alphas(network.spec, alphas), Geometry::kKept);
  const Weights small = models::views(part, weights);
  const std::vector<PlacedBlock> placed = placed_blocks(part.spec);
  const double eps = network.spec.norm_eps;
  std::vector<std::optional<FirstPart>> found;
  for (size_t i = 0; i < alphas.size(); ++i) {
    found.emplace_back();
    if (alphas[i] == 1) continue;
    const torch::Tensor& x = pass.inputs[i];
    const auto given = nn::settled(nn::block(placed[i], eps, small, {x}, {}));
    const auto whole = (pass.changed[i] - x).to(torch::kFloat64);
    const auto first = (given - x).to(torch::kFloat64);
    const auto product = (whole * first).sum().item<double>();
    const auto size = whole.norm().item<double>() * first.norm().item<double>();
    const auto missed = (whole - first).square().sum().item<double>();
    const auto all = whole.square().sum().item<double>();
    found.back() = {alphas[i], all > 0 ? 1 - missed / all : 0, size > 0 ? product / size : 0};
  }
  return found;
}

void add_attention(BlockReport& report, const PlacedBlock& placed, double norm_eps,
                   const Weights& weights, const torch::Tensor& x, int64_t most_images) {
  const auto seen = nn::read_by_attention(placed, norm_eps, weights, x, {});
  const auto map = attention_map(placed, weights, nn::heads_of(placed, weights, seen)).weights;
  report.attention_entropy = numbers(attention_entropy(map));
  const int64_t images = std::min(most_images, map.size(0));
  const auto spectra = attention_spectrum(map.narrow(0, 0, images));  // (H, N)
  report.attention_rank = numbers(effective_rank_of(spectra));
  for (int64_t h = 0; h < spectra.size(0); ++h) {
    report.attention_spectrum.push_back(numbers(spectra[h]));
  }
}

std::optional<double> gradient_of_block(const Weights& leaves, const std::string& name) {
  double sum = 0;
  bool is_any = false;
  for (const auto& [key, tensor] : leaves) {
    if (!key.starts_with(name + ".") || !tensor.grad().defined()) continue;
    sum += tensor.grad().to(torch::kFloat64).square().sum().item<double>();
    is_any = true;
  }
  return is_any ? std::optional(std::sqrt(sum)) : std::nullopt;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

Inspection inspect(const Network& network, const Sample& sample, const InspectOptions& options) {
  const bool has_labels = sample.labels.defined();
  const Weights leaves = leaves_of(network, has_labels);
  Pass pass;
  Inspection result;
  result.model = network.spec.name;
  {
    const torch::AutoGradMode mode(has_labels);
    pass = passed(network, leaves, sample.images, options.is_brief);
    if (has_labels) {
      const auto loss = torch::nn::functional::cross_entropy(pass.logits, sample.labels);
      result.loss = loss.item<double>();
      loss.backward();
    }
  }
  const torch::NoGradGuard no_grad;
  result.logits = pass.logits.detach();
  if (has_labels) {
    result.top1 = 100 * mean_of((result.logits.argmax(-1) == sample.labels).to(torch::kFloat64));
  }
  const Weights weights = leaves_of(network, false);
  std::vector<std::optional<FirstPart>> parts(pass.inputs.size());
  if (!options.is_brief) parts = first_parts(network, weights, pass, options.alpha);
  const std::vector<PlacedBlock> placed = placed_blocks(network.spec);
  size_t block = 0;
  for (size_t i = 0; i < pass.names.size(); ++i) {
    result.outputs.push_back(pass.outputs[i].detach());
    LayerReport& layer = result.layers.emplace_back(
        layer_report(pass.names[i], pass.outputs[i], pass.outputs[0], options.images));
    while (block < placed.size() && layer.name.find("blocks.") != std::string::npos &&
           layer.name != placed[block].name) {
      ++block;  // one that was left out
    }
    if (block == placed.size() || layer.name != placed[block].name) continue;
    layer.origin = placed[block].block->origin;
    BlockReport& report = layer.block.emplace();
    report.weight_gradient_norm = gradient_of_block(leaves, layer.name);
    report.first_part = parts[block];
    if (!options.is_brief) {
      add_attention(report, placed[block], network.spec.norm_eps, weights, pass.inputs[block],
                    options.images);
    }
    ++block;
  }
  return result;
}

Json brief_json(const Inspection& inspection) {
  Json layers = Json::array();
  for (const LayerReport& layer : inspection.layers) {
    layers.push_back({{"name", layer.name},
                      {"residual_frobenius", layer.residual_frobenius},
                      {"residual_composite", layer.residual_composite},
                      {"token_cosine", layer.token_cosine},
                      {"effective_rank", layer.effective_rank},
                      {"activation_norm", layer.activation_norm},
                      {"gradient_norm", or_null(layer.gradient_norm)}});
  }
  return layers;
}

Json to_json(const Inspection& inspection) {
  Json layers = brief_json(inspection);
  for (size_t i = 0; i < inspection.layers.size(); ++i) {
    const LayerReport& layer = inspection.layers[i];
    Json& json = layers[i];
    json["tokens"] = layer.tokens;
    json["width"] = layer.width;
    json["residual_frobenius_of_input"] = layer.residual_frobenius_of_input;
    json["residual_composite_of_input"] = layer.residual_composite_of_input;
    json["attention_entropy"] = Json::array();
    if (!layer.block) continue;
    const BlockReport& block = *layer.block;
    json["attention_entropy"] = block.attention_entropy;
    json["attention_rank"] = block.attention_rank;
    json["attention_spectrum"] = block.attention_spectrum;
    json["weight_gradient_norm"] = or_null(block.weight_gradient_norm);
    if (block.first_part) {
      json["first_part"] = {{"alpha", block.first_part->alpha},
                            {"explained", block.first_part->explained},
                            {"cosine", block.first_part->cosine}};
    }
  }
  return {{"model", inspection.model},
          {"batch", inspection.logits.size(0)},
          {"loss", or_null(inspection.loss)},
          {"top1", or_null(inspection.top1)},
          {"layers", layers}};
}

}  // namespace adjoin::analysis
