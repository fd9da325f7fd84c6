#include "adjoin/analysis/compare.h"

#include <fmt/format.h>

#include "adjoin/analysis/emd.h"
#include "adjoin/analysis/numbers.h"
#include "adjoin/core/error.h"

namespace adjoin::analysis {
namespace {

/// Tokens (N, C) as points of the same mass, one in all.
Masses cloud(const torch::Tensor& tokens) {
  const auto count = static_cast<size_t>(tokens.size(0));
  return {std::vector<double>(count, 1), numbers(tokens), tokens.size(1)};
}

CloudDistance distance_of(const torch::Tensor& first, const torch::Tensor& second, int64_t images) {
  CloudDistance found;
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

/// Blocks by where they came from, other layers by name.
bool are_the_same(const LayerReport& a, const LayerReport& b) {
  if (a.origin && b.origin) return *a.origin == *b.origin;
  return a.name == b.name && !a.origin && !b.origin;
}

bool can_be_solved(int64_t points) { return has_emd() && points * points <= kMostPairs; }

std::string why_unsolved() {
  return has_emd() ? "there are too many points to move"
                   : "this build has no earth mover's distance (install liblemon-dev)";
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
  size_t unsolved = 0;
  for (size_t i = 0; i < first.layers.size(); ++i) {
    for (size_t j = 0; j < second.layers.size(); ++j) {
      if (!are_the_same(first.layers[i], second.layers[j])) continue;
      if (first.outputs[i].sizes() != second.outputs[j].sizes()) {
        ++unlike;
      } else if (!can_be_solved(first.outputs[i].size(1))) {
        ++unsolved;
      } else {
        CloudDistance& found =
            result.layers.emplace_back(distance_of(first.outputs[i], second.outputs[j], images));
        found.first = first.layers[i].name;
        found.second = second.layers[j].name;
      }
    }
  }
  if (unlike > 0) {
    result.notes.push_back(fmt::format(
        "{} layers have another width or number of tokens in the two networks: no distance between "
        "their clouds",
        unlike));
  }
  if (unsolved > 0) {
    result.notes.push_back(fmt::format("{} layers have no distance: {}", unsolved, why_unsolved()));
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
  if (can_be_solved(p.size(1))) {
    result.class_emd =
        transport(numbers(p.mean(0)), numbers(q.mean(0)), numbers(distances)).distance;
  } else {
    result.notes.push_back("classes have no distance: " + why_unsolved());
  }
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
          {"class_emd", comparison.class_emd ? Json(*comparison.class_emd) : Json()},
          {"total_variation", comparison.total_variation},
          {"kl", comparison.kl},
          {"agreement", comparison.agreement},
          {"notes", comparison.notes}};
}

}  // namespace adjoin::analysis
