#include "adjoin/analysis/gradient_law.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <cmath>

#include "adjoin/models/init.h"
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::analysis {
namespace {

constexpr int64_t kTokens = 16;
constexpr int64_t kHeads = 4;
constexpr int64_t kClasses = 10;

ModelSpec stack_spec(NormPlacement norm, int64_t depth, int64_t width) {
  return with_overrides(catalog_spec("vit_mini_28"), {{"depth", std::to_string(depth)},
                                                      {"embed_dim", std::to_string(width)},
                                                      {"heads", std::to_string(kHeads)},
                                                      {"mlp_ratio", "1"},
                                                      {"norm", std::string(enum_name(norm))}});
}

double gradient_norm(NormPlacement norm, int64_t depth, int64_t width, uint64_t seed) {
  const ModelSpec spec = stack_spec(norm, depth, width);
  const Weights start = models::init(spec, seed);
  auto rng = at::detail::createCPUGenerator(seed);
  const auto normal = [&](at::IntArrayRef shape) {
    return torch::randn(shape, rng, torch::kFloat64);
  };
  const double deviation = 1 / std::sqrt(static_cast<double>(width));  // Xavier: all are square
  Weights weights;
  for (const auto& [name, tensor] : start) {
    const bool is_matrix = name.starts_with("blocks.") && tensor.dim() == 2;
    const bool is_gain = name.find("norm") != std::string::npos && name.ends_with("weight");
    weights.set(name, is_matrix ? normal(tensor.sizes()) * deviation
                      : is_gain ? torch::ones_like(tensor, torch::kFloat64)
                                : tensor.to(torch::kFloat64));
  }
  const std::string last = fmt::format("blocks.{}.mlp.fc2.weight", depth - 1);
  const auto leaf = weights.at(last).clone().requires_grad_(true);
  weights.set(last, leaf);
  const auto tokens = normal({1, kTokens, width});
  const auto head =
      normal({kClasses, width}) * std::sqrt(2 / static_cast<double>(width + kClasses));
  const auto labels = torch::randint(kClasses, {kTokens}, rng, torch::kInt64);
  nn::Stream stream = nn::blocks(spec, weights, tokens, {});
  const auto y = nn::next_norm(stream, weights, "norm.", spec.norm_eps, {});
  torch::nn::functional::cross_entropy(torch::matmul(y[0], head.t()), labels).backward();
  return leaf.grad().norm().item<double>();
}

double mean_gradient(NormPlacement norm, int64_t depth, int64_t width, int64_t seeds) {
  double sum = 0;
  for (int64_t seed = 0; seed < seeds; ++seed) {
    sum += gradient_norm(norm, depth, width, static_cast<uint64_t>(seed));
  }
  return sum / static_cast<double>(seeds);
}

}  // namespace

double log_slope(const std::vector<int64_t>& x, const std::vector<double>& y) {
  double mean_x = 0, mean_y = 0;
  const auto count = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += std::log(static_cast<double>(x[i])) / count;
    mean_y += std::log(y[i]) / count;
  }
  double product = 0, square = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double across = std::log(static_cast<double>(x[i])) - mean_x;
    product += across * (std::log(y[i]) - mean_y);
    square += across * across;
  }
  return product / square;
}

GradientLaw gradient_law(NormPlacement norm, const GradientLawOptions& options) {
  GradientLaw law;
  law.norm = norm;
  for (const int64_t depth : options.depths) {
    law.by_depth.push_back(mean_gradient(norm, depth, options.width_of_depths, options.seeds));
  }
  for (const int64_t width : options.widths) {
    law.by_width.push_back(mean_gradient(norm, options.depth_of_widths, width, options.seeds));
  }
  law.depth_slope = log_slope(options.depths, law.by_depth);
  law.width_slope = log_slope(options.widths, law.by_width);
  return law;
}

Json to_json(const GradientLaw& law, const GradientLawOptions& options) {
  return {{"norm", enum_name(law.norm)},        {"depth_slope", law.depth_slope},
          {"width_slope", law.width_slope},     {"depths", options.depths},
          {"gradients_by_depth", law.by_depth}, {"widths", options.widths},
          {"gradients_by_width", law.by_width}};
}

}  // namespace adjoin::analysis
