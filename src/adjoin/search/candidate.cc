#include "adjoin/search/candidate.h"

#include <algorithm>

#include "adjoin/compress/job.h"
#include "adjoin/core/error.h"
#include "adjoin/core/place.h"
#include "adjoin/models/init.h"
#include "adjoin/models/slice.h"
#include "adjoin/models/timing.h"
#include "adjoin/search/job.h"
#include "adjoin/spec/overrides.h"
#include "adjoin/tensor/device.h"

namespace adjoin::search {
namespace {

template <class Kind>
std::vector<Kind> kinds(const std::vector<std::string>& names, const std::string& field) {
  std::vector<Kind> result;
  for (const std::string& name : names) {
    Kind kind{};
    from_json(Json(name), kind, field);
    if (std::find(result.begin(), result.end(), kind) != result.end()) {
      throw Error(ErrorKind::kConfig, field + ": names " + name + " twice");
    }
    result.push_back(kind);
  }
  return result;
}

ExplorationOptions exploration_options(const BayesOptions& options) {
  const bool has_none =
      std::find(options.skips.begin(), options.skips.end(), "none") != options.skips.end();
  if (has_none && options.skips.size() > 1) {
    throw Error(ErrorKind::kConfig, "skips: none stands alone, or is left out");
  }
  return {kinds<NormPlacement>(options.norms, "norms"),
          has_none ? std::vector<SkipKind>() : kinds<SkipKind>(options.skips, "skips")};
}

/// The large network is its own teacher, not somebody's student.
train::TrainConfig untaught(const SearchConfig& config) {
  train::TrainConfig result = config.compress.train;
  result.distillation = train::DistillationKind::kNone;
  return result;
}

/// The same from the file `teacher`, of which the run itself wrote all that changes of the model
/// say. How many classes it has must be said again where they are not those of the images.
train::TrainConfig begun_with(train::TrainConfig training, const std::string& teacher) {
  if (teacher == training.from) return training;
  training.from = teacher;
  training.model.clear();
  std::erase_if(training.set,
                [](const std::string& text) { return parse_override(text).key != "num_classes"; });
  return training;
}

/// The config of the whole, but for what is of the training of what was found alone.
void set_trial_config(train::Job& job, const SearchConfig& config) {
  set_search_config(job, config);
  for (const std::string& field : final_fields()) job.whole_config.erase(field);
}

/// The large network in `teacher` as start and as teacher.
train::TrainConfig taught(const SearchConfig& config, const std::string& teacher) {
  train::TrainConfig result = begun_with(config.compress.train, teacher);
  result.teacher = teacher;
  return result;
}

}  // namespace

SearchConfig with_teaching(SearchConfig config) {
  train::DistillationKind& kind = config.compress.train.distillation;
  if (kind == train::DistillationKind::kNone) kind = train::DistillationKind::kMse;
  return config;
}

std::string large_file(const SearchConfig& config, const std::string& copy) {
  const std::string& from = config.compress.train.from;
  const bool is_gone = !from.empty() && place_at(from) == Place::kNothing;
  return is_gone && place_at(copy) == Place::kFile ? copy : from;
}

Exploration exploration(const SearchConfig& config, const std::string& large_file) {
  check(config);
  ModelSpec large = train::network_of(begun_with(untaught(config), large_file));
  const Target target = stated_target(config, large);
  Exploration space(std::move(large), target, exploration_options(config.bayes));
  check_feasible(space);
  return space;
}

train::Job prepare_teacher(const SearchConfig& config, const train::Launch& launch) {
  train::TrainConfig training = untaught(config);
  training.set_aside = config.search_fraction;
  train::Job job = train::prepare(training, launch);
  set_trial_config(job, config);
  return job;
}

models::Model ordered(const SearchConfig& config, const std::string& teacher,
                      const train::Launch& launch) {
  train::TrainConfig training = begun_with(untaught(config), teacher);
  training.set_aside = config.search_fraction;
  const train::Job job = train::prepare(training, launch);
  return {job.header, compress::ordered_start(job, config.compress), {}};
}

train::Job prepare_student(const SearchConfig& config, const std::string& teacher,
                           const Choice& choice, Length length, Images images,
                           const train::Launch& launch) {
  train::TrainConfig training = taught(config, teacher);
  if (length == Length::kTrial) {
    training = shortened(config, std::move(training));
    training.schedule.warmup_epochs =
        std::min(training.schedule.warmup_epochs, static_cast<double>(training.epochs) / 5);
  }
  if (images == Images::kHeldIn) training.set_aside = config.search_fraction;
  train::Job job = train::prepare(training, launch);
  const Derived small = derive(job.header.spec, choice, Geometry::kKept);
  job.start = models::copies(small, job.start,
                             models::fresh_tensors(small, static_cast<uint64_t>(training.seed)));
  job.header.spec = small.spec;
  job.name = "small";
  set_trial_config(job, config);
  return job;
}

train::Job prepare_adjoined(const SearchConfig& config, const std::string& teacher,
                            const Choice& choice, Images images, const train::Launch& launch) {
  compress::CompressConfig training = config.compress;
  training.train = begun_with(untaught(config), teacher);
  training.order = compress::Order::kNone;  // as the file is
  if (images == Images::kHeldIn) training.train.set_aside = config.search_fraction;
  train::Job job = compress::prepare(training, launch, choice);
  set_search_config(job, config);
  return job;
}

train::Evaluation judged(const SearchConfig& config, const std::string& file, JudgedBy by,
                         const train::Launch& launch) {
  train::TrainConfig training = config.compress.train;
  if (by == JudgedBy::kSetAside) training.set_aside = config.search_fraction;
  const train::Compute compute =
      train::choose_compute(training.device, training.dtype, launch.local_rank);
  const models::Model model = models::load(file);
  data::DataSets sets = train::open_images(training);
  train::check_classes(model.header, sets.val, file);
  train::Group alone;
  data::Loader loader(std::move(sets.val),
                      train::evaluation_loader(model.header, training.batch_size, training.workers,
                                               compute.device, alone));
  const Weights weights = model.weights.to(compute.device, compute.weight_type());
  return train::evaluate({{model.header.spec, weights, file}}, loader, compute, alone).front();
}

Latency measured_latency(const Exploration& space, const Choice& choice) {
  std::vector<models::Model> networks(2);
  networks[0].header.spec = space.large();
  networks[1].header.spec = derive(space.large(), choice, Geometry::kKept).spec;
  for (models::Model& network : networks) {
    network.weights = models::init(network.header.spec, 0);
  }
  const Threads one(1);
  const auto timings = models::time_networks(networks, {});
  return {timings[0][0].ms, timings[1][0].ms};
}

Worth::Worth(const SearchConfig& config, const Exploration& space, Baseline baseline)
    : options_(config.bayes),
      limits_(space.limits()),
      large_(space.price(space.whole())),
      baseline_(std::move(baseline)),
      cost_(config.bayes.reward_cost) {
  if (cost_ == RewardCost::kAuto) {
    const bool is_params = !limits_.macs && limits_.params;
    cost_ = is_params ? RewardCost::kParams : RewardCost::kMacs;
  }
}

double Worth::compression(const Price& price, const std::optional<Latency>& latency) const {
  const auto saved = [](double part, double whole, const std::optional<int64_t>& limit) {
    const double least = limit ? static_cast<double>(*limit) : 0;
    return 1 - std::max(part, least) / whole;
  };
  switch (cost_) {
    case RewardCost::kParams:
      return saved(static_cast<double>(price.params), static_cast<double>(large_.params),
                   limits_.params);
    case RewardCost::kLatency:
      if (!latency) throw Error(ErrorKind::kInternal, "a reward by latency without one");
      return saved(latency->small, latency->large, {});
    case RewardCost::kMacs:
    case RewardCost::kAuto: break;
  }
  return saved(static_cast<double>(price.macs), static_cast<double>(large_.macs), limits_.macs);
}

double Worth::speed(const std::vector<double>& losses) const {
  switch (options_.reward_by) {
    case RewardBy::kTseE: return training_speed_last(losses, options_.tse_epochs);
    case RewardBy::kTseEma: return training_speed_average(losses, options_.tse_weight);
    case RewardBy::kTse:
    case RewardBy::kAccuracy: break;
  }
  return training_speed(losses);
}

double Worth::operator()(const Price& price, const std::optional<Latency>& latency,
                         const std::vector<double>& losses, const std::vector<double>& tops) const {
  double accuracy = 0;
  if (options_.reward_by == RewardBy::kAccuracy) {
    accuracy = baseline_.top1 > 0 ? tops.back() / baseline_.top1 : 0;
  } else {
    std::vector<double> theirs = baseline_.losses;
    theirs.resize(std::min(theirs.size(), losses.size()));
    accuracy = speed_share(speed(theirs), speed(losses));
  }
  return options_.reward(compression(price, latency), accuracy);
}

}  // namespace adjoin::search
