#include "adjoin/search/job.h"

#include <fmt/format.h>

#include "adjoin/compress/job.h"
#include "adjoin/core/atomic_file.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"
#include "adjoin/spec/architecture.h"

namespace adjoin::search {
namespace {

/// The training that a search does, on its own images.
train::TrainConfig search_training(const SearchConfig& config) {
  train::TrainConfig result = config.compress.train;
  if (!config.search_data.empty()) {
    result.data = config.search_data;
    result.reset_head = true;
  }
  result.set_aside = config.search_fraction;
  return shortened(config, std::move(result));
}

Json price_json(const Price& price) { return {{"macs", price.macs}, {"params", price.params}}; }

/// {"alphas", "candidates", "probabilities", "expected_macs", "networks": {name:
/// {"macs","params"}}} of now. `networks`: what else is judged.
Json described(const Dan& dan, const train::Trainer& trainer, Json networks) {
  const Learned learned = dan.learned(trainer.parameters().weights(1));
  Json rows = Json::array();
  const auto p = learned.probabilities.accessor<double, 2>();
  for (size_t i = 0; i < dan.wanted().blocks(); ++i) {
    Json row = Json::array();
    for (size_t j = 0; j < dan.wanted().alphas()[i].size(); ++j) {
      row.push_back(p[static_cast<int64_t>(i)][static_cast<int64_t>(j)]);
    }
    rows.push_back(std::move(row));
  }
  networks["searched"] = price_json(learned.fitted.price);
  return {{"alphas", learned.fitted.alphas},
          {"candidates", dan.wanted().alphas()},
          {"probabilities", rows},
          {"expected_macs", dan.expected_macs(learned.probabilities)},
          {"networks", networks}};
}

/// Writes what a search would hand over, after every epoch, and says so in the log.
class ArchitectureWriter : public train::Observer {
 public:
  /// `others`: prices of what else is judged.
  ArchitectureWriter(std::shared_ptr<const Dan> dan, std::string folder, Json others)
      : dan_(std::move(dan)), folder_(std::move(folder)), others_(std::move(others)) {}

  void on_epoch(const train::Position& /*position*/, const train::EpochReport& /*report*/,
                const train::Trainer& trainer) override {
    write_architecture(folder_, dan_->wanted().large(),
                       dan_->learned(trainer.parameters().weights(1)).fitted.choice);
  }

  Json epoch_fields(const train::EpochEnd& end) override {
    return {{"search", described(*dan_, end.trainer, others_)}};
  }

 private:
  std::shared_ptr<const Dan> dan_;
  std::string folder_;
  Json others_;
};

}  // namespace

void set_search_config(train::Job& job, const SearchConfig& config) {
  SearchConfig resolved = config;
  resolved.compress.train.dtype = job.config.dtype;
  set_config(job, resolved);
  job.whole_config.erase("retrain");  // what was found may be trained later
  if (config.method == Method::kBayes) {
    for (const char* field : kMayChange) job.whole_config.erase(field);
  }
  job.header.provenance.recipe = train::recipe_hash(job.whole_config);
}

int64_t trial_epochs(const SearchConfig& config) {
  if (config.search_epochs > 0) return config.search_epochs;
  const int64_t epochs = config.compress.train.epochs;
  return config.method == Method::kDan ? epochs : std::max<int64_t>(epochs / 10, 1);
}

train::TrainConfig shortened(const SearchConfig& config, train::TrainConfig training) {
  training.epochs = trial_epochs(config);
  if (has_trials(config.method)) training.model_ema = false;  // it would be mostly the start
  return training;
}

Target stated_target(const SearchConfig& config, const ModelSpec& large) {
  const Cost most = cost(large);
  Target target;
  if (!config.target_macs.empty()) {
    target.macs = parse_amount(config.target_macs, most.macs.total(), "--target-macs");
  }
  if (!config.target_params.empty()) {
    target.params = parse_amount(config.target_params, most.params, "--target-params");
  }
  if (!config.target_bytes.empty()) {
    constexpr int64_t kBytes = 4;  // of a parameter in float32
    const int64_t params =
        parse_amount(config.target_bytes, most.weight_bytes, "--target-bytes") / kBytes;
    target.params = std::max<int64_t>(1, std::min(params, target.params.value_or(params)));
  }
  return target;
}

Question question(const SearchConfig& config) {
  check(config);
  Space space(train::network_of(config.compress.train), config.candidates);
  const Target target = stated_target(config, space.large());
  check_feasible(space, target);
  return {std::move(space), target};
}

train::Job prepare_dan(const SearchConfig& config, const Question& question,
                       const train::Launch& launch, const std::string& folder) {
  train::Job job = train::prepare(search_training(config), launch);
  job.notes.push_back(
      fmt::format("the search is judged by {} of the training images, and learns "
                  "from the others",
                  with_commas(job.data.val.size())));
  job.start = compress::ordered_start(job, config.compress);
  const auto dan =
      std::make_shared<Dan>(Space(job.header.spec, config.candidates), question.space,
                            question.target, config.dan, job.config.seed, job.compute.device);
  job.name = "large";
  job.inner = {dan->network()};
  job.judged.push_back({"searched", [dan](const train::Trainer& trainer) {
                          const Learned learned = dan->learned(trainer.parameters().weights(1));
                          return derive(trainer.spec(), learned.fitted.choice, Geometry::kKept);
                        }});
  Json others = {
      {"large", price_json(question.space.price(keep_everything(question.space.large())))}};
  if (question.target.is_stated()) {
    if (const std::optional<Fitted> alike = fit_evenly(question.space, question.target)) {
      others["uniform"] = price_json(alike->price);
      job.judged.push_back({"uniform", [choice = alike->choice](const train::Trainer& trainer) {
                              return derive(trainer.spec(), choice, Geometry::kKept);
                            }});
    } else {
      job.notes.emplace_back(
          "with all blocks alike the target cannot be reached: no uniform network to compare with");
    }
  }
  job.observers.push_back(std::make_shared<ArchitectureWriter>(dan, folder, others));
  job.objective = std::make_unique<DanObjective>(dan, config.compress.adjoined,
                                                 std::move(job.objective), job.config.epochs);
  set_search_config(job, config);
  return job;
}

train::Job prepare_trial(const SearchConfig& config, const Choice& choice,
                         const train::Launch& launch) {
  compress::CompressConfig of_trial = config.compress;
  of_trial.train = search_training(config);
  of_trial.stop_when_within = 0;
  train::Job job = compress::prepare(of_trial, launch, choice);
  set_search_config(job, config);
  return job;
}

train::Job prepare_training(const SearchConfig& config, const Choice& choice,
                            const train::Launch& launch) {
  train::Job job = compress::prepare(config.compress, launch, choice);
  set_search_config(job, config);
  return job;
}

std::string architecture_file(const std::string& folder) { return folder + "/architecture.json"; }

void write_architecture(const std::string& folder, const ModelSpec& large, const Choice& choice) {
  AtomicFile file(architecture_file(folder));
  file.write(architecture_to_json(large, choice).dump(2) + "\n");
  file.commit();
}

}  // namespace adjoin::search
