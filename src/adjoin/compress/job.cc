#include "adjoin/compress/job.h"

#include <fmt/format.h>

#include <set>

#include "adjoin/core/error.h"
#include "adjoin/data/subset.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/chosen_part.h"

namespace adjoin::compress {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kConfig, message); }

/// "blocks.3.norm1.weight", "norm.bias", "layers.1.downsample.norm.weight".
bool is_norm(const std::string& tensor) {
  const size_t end = tensor.rfind('.');
  if (end == std::string::npos) return false;
  const size_t begin = tensor.rfind('.', end - 1) + 1;
  return tensor.compare(begin, 4, "norm") == 0;
}

/// Norms become tensors of the small network's own, with the values they share until now.
train::InnerNetwork with_own_norms(train::InnerNetwork network, const Weights& start) {
  const Weights shared = models::copies(network.derived, start);
  bool is_embedding = true;  // whatever comes before the first block stays shared
  for (Source& source : network.derived.sources) {
    is_embedding = is_embedding && source.tensor.block < 0;
    if (is_embedding || !is_norm(source.tensor.name)) continue;
    source.slice.reset();
    network.own.set(source.tensor.name, shared.at(source.tensor.name));
  }
  return network;
}

/// Measured on training images of all classes, as evaluation sees them.
std::vector<Importance> measured(const train::Job& job, int64_t count) {
  constexpr int64_t kImagesAtOnce = 64;
  const ModelSpec& spec = job.header.spec;
  const Weights weights = job.start.to(torch::kCPU, torch::kFloat32);
  const train::Group alone;
  data::Loader loader(
      data::limited(*job.data.train, count),
      train::evaluation_loader(job.header, kImagesAtOnce, job.workers, torch::kCPU, alone));
  std::vector<Importance> sum;
  loader.begin(0);
  for (int64_t i = 0; i < loader.steps(); ++i) {
    const data::Batch batch = loader.next();
    const auto is_read = batch.labels >= 0;
    if (!is_read.any().item<bool>()) continue;
    const auto part =
        taylor(spec, weights, batch.images.index({is_read}), batch.labels.index({is_read}));
    if (sum.empty()) {
      sum = part;
      continue;
    }
    for (size_t k = 0; k < part.size(); ++k) {
      sum[k].heads += part[k].heads;
      sum[k].hidden += part[k].hidden;
    }
  }
  if (sum.empty()) refuse("order: no image could be read to measure importance on");
  return sum;
}

void check_size(const CompressConfig& config) {
  const int given = int{!config.alpha.empty()} + int{!config.alphas.empty()} + int{config.keep > 0};
  if (given == 0) refuse("alpha: is missing; say how small: --alpha, --alphas or --keep");
  if (given > 1) refuse("alpha: give one of alpha, alphas and keep");
  if (std::set(config.alpha.begin(), config.alpha.end()).size() != config.alpha.size()) {
    refuse("alpha: names a small network twice");
  }
}

}  // namespace

void check_order(const CompressConfig& config) {
  if (config.order == Order::kNone) return;
  if (config.train.from.empty()) {
    refuse(fmt::format("order: is {}, but start values drawn at random have no order; give --from",
                       enum_name(config.order)));
  }
  if (config.geometry == Geometry::kNarrow) {
    refuse(
        "order: geometry narrow also cuts the residual stream, whose channels cannot be put in "
        "order; use geometry kept");
  }
}

Weights ordered_start(const train::Job& job, const CompressConfig& config) {
  const ModelSpec& spec = job.header.spec;
  if (config.order == Order::kNone) return job.start;
  return reordered(spec, job.start,
                   config.order == Order::kMagnitude ? magnitude(spec, job.start)
                                                     : measured(job, config.order_images));
}

std::vector<train::InnerNetwork> inner_networks(const CompressConfig& config,
                                                const ModelSpec& large, const Weights& start,
                                                const std::optional<Choice>& choice) {
  std::vector<std::pair<std::string, Derived>> parts;
  const auto add = [&](const std::string& name, const ChoiceText& text) {
    parts.emplace_back(name, *chosen_part(large, text));
  };
  if (choice) {
    parts.emplace_back("small", derive(large, *choice, Geometry::kKept));
  } else if (!config.alphas.empty()) {
    add("small", {{}, config.alphas, {}, config.geometry});
  } else if (config.keep > 0) {
    add("small", {{}, {}, config.keep, config.geometry});
  } else {
    for (const int64_t alpha : config.alpha) {
      const bool is_one = config.alpha.size() == 1;
      add(is_one ? "small" : fmt::format("small-{}", alpha), {alpha, {}, {}, config.geometry});
    }
  }
  std::vector<train::InnerNetwork> result;
  for (auto& [name, part] : parts) {
    train::InnerNetwork network{name, std::move(part), {}};
    network.own = models::fresh_tensors(network.derived, static_cast<uint64_t>(config.train.seed));
    result.push_back(config.separate_norms ? with_own_norms(std::move(network), start)
                                           : std::move(network));
  }
  return result;
}

train::Job prepare(const CompressConfig& config, const train::Launch& launch,
                   const std::optional<Choice>& choice) {
  if (!choice) check_size(config);
  check_order(config);
  train::Job job = train::prepare(config.train, launch);
  if (!choice && config.order != Order::kTaylor &&
      config.order_images != CompressConfig{}.order_images) {
    job.notes.emplace_back("order_images: has no effect without --order taylor");
  }
  job.name = "large";
  job.start = ordered_start(job, config);
  job.inner = inner_networks(config, job.header.spec, job.start, choice);
  job.objective = std::make_unique<AdjoinedObjective>(config.adjoined, std::move(job.objective),
                                                      job.inner_names(), config.train.epochs);
  CompressConfig resolved = config;
  resolved.train = job.config;
  set_config(job, resolved);
  if (config.alphas.starts_with('@')) {  // what the file says counts, not where it lies
    Json said = job.whole_config;
    said["alphas"] = train::spec_hash(job.inner[0].derived.spec);
    job.header.provenance.recipe = train::recipe_hash(said);
  }
  if (config.stop_when_within > 0) {
    job.is_enough = [config](double time, const train::EpochReport& report) {
      if (!is_lambda_full(config.adjoined, time, config.train.epochs)) return false;
      const std::vector<train::Evaluation>& evaluations = report.evaluations;
      return std::all_of(evaluations.begin() + 1, evaluations.end(), [&](const auto& small) {
        return small.top1 >= evaluations[0].top1 - config.stop_when_within;
      });
    };
  }
  return job;
}

}  // namespace adjoin::compress
