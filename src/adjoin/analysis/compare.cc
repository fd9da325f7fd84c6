#include "adjoin/analysis/compare.h"

#include <fmt/format.h>

#include "adjoin/analysis/emd.h"
#include "adjoin/core/error.h"

namespace adjoin::analysis {
namespace {

std::vector<double> values_of(const torch::Tensor& x) {
  const auto flat = x.to(torch::kCPU, torch::kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

/// Tokens (N, C) as points of the same mass, one in all.
Masses cloud(const torch::Tensor& tokens) {
  const auto count = static_cast<size_t>(tokens.size(0));
  return {std::vector<double>(count, 1), values_of(tokens), tokens.size(1)};
}

CloudDistance distance_of(const std::string& name, const torch::Tensor& first,
                          const torch::Tensor& second, int64_t images) {
  CloudDistance found{name, name, 0, 0};
  for (int64_t i = 0; i < images; ++i) {
    const auto moved =
        earth_movers_distance(cloud(first[i]), cloud(second[i]), GroundCost::kL2).distance;
    found.token_emd +=
        moved / static_cast<double>(first.size(1)) / static_cast<double>(images);  // of one token
  }
  const auto length = first.narrow(0, 0, images).norm(2, -1).mean().item<double>();
  found.token_emd_relative = length > 0 ? found.token_emd / length : 0;
  return found;
}

}  // namespace

torch::Tensor class_distances(const Network& network) {
  const bool is_swin = network.weights.find("head.fc.weight").defined();
  const auto rows =
      network.weights.at(is_swin ? "head.fc.weight" : "head.weight").detach().to(torch::kFloat64);
  const auto found = torch::cdist(rows, rows, 2, /*compute_mode=*/2);  // exact
  const auto most = found.max();
  if (most.item<double>() > 0) return found / most;
  return torch::ones_like(found) - torch::eye(found.size(0), found.options());
}

Comparison compare(const Inspection& first, const Inspection& second,
                   const torch::Tensor& distances, const CompareOptions& options) {
  if (first.logits.size(1) != second.logits.size(1)) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("{} tells {} classes apart, {} {}: they cannot be compared", first.model,
                    first.logits.size(1), second.model, second.logits.size(1)));
  }
  Comparison result;
  const int64_t images = std::min(options.images, first.logits.size(0));
  size_t unlike = 0;
  for (size_t i = 0; i < first.layers.size(); ++i) {
    for (size_t j = 0; j < second.layers.size(); ++j) {
      if (first.layers[i].name != second.layers[j].name) continue;
      if (first.outputs[i].sizes() != second.outputs[j].sizes()) {
        ++unlike;
        continue;
      }
      result.layers.push_back(
          distance_of(first.layers[i].name, first.outputs[i], second.outputs[j], images));
    }
  }
  if (unlike > 0) {
    result.notes.push_back(fmt::format(
        "{} layers have another width or number of tokens in the two networks: no distance between "
        "their clouds",
        unlike));
  }
  const auto p = torch::softmax(first.logits.to(torch::kFloat64), -1);
  const auto q = torch::softmax(second.logits.to(torch::kFloat64), -1);
  result.total_variation = 0.5 * (p - q).abs().sum(-1).mean().item<double>();
  const auto log_q = torch::log_softmax(second.logits.to(torch::kFloat64), -1);
  result.kl = (torch::xlogy(p, p) - p * log_q).sum(-1).mean().item<double>();
  result.agreement = 100 * (first.logits.argmax(-1) == second.logits.argmax(-1))
                               .to(torch::kFloat64)
                               .mean()
                               .item<double>();
  result.class_emd =
      transport(values_of(p.mean(0)), values_of(q.mean(0)), values_of(distances)).distance;
  return result;
}

Json to_json(const Comparison& comparison) {
  Json layers = Json::array();
  for (const CloudDistance& layer : comparison.layers) {
    layers.push_back({{"first", layer.first},
                      {"second", layer.second},
                      {"token_emd", layer.token_emd},
                      {"token_emd_relative", layer.token_emd_relative}});
  }
  return {{"layers", layers},
          {"class_emd", comparison.class_emd},
          {"total_variation", comparison.total_variation},
          {"kl", comparison.kl},
          {"agreement", comparison.agreement},
          {"notes", comparison.notes}};
}

}  // namespace adjoin::analysis
