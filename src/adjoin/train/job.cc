#include "adjoin/train/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "adjoin/core/error.h"
#include "adjoin/core/hash.h"
#include "adjoin/core/threads.h"
#include "adjoin/models/init.h"
#include "adjoin/models/load.h"
#include "adjoin/spec/named.h"
#include "adjoin/tensor/device.h"
#include "adjoin/train/memory_advice.h"

namespace adjoin::train {
namespace {

bool names(const std::vector<Override>& overrides, std::string_view key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const Override& o) { return o.key == key; });
}

/// What the user asked for, and what follows from data and flags.
std::vector<Override> overrides_of(const TrainConfig& config, int64_t classes) {
  std::vector<Override> overrides;
  for (const std::string& text : config.set) overrides.push_back(parse_override(text));
  if (!names(overrides, "num_classes")) {
    overrides.push_back({"num_classes", std::to_string(classes)});
  }
  if (config.drop_path >= 0) {
    if (names(overrides, "drop_path")) {
      throw Error(ErrorKind::kConfig, "drop_path: is given twice, also as set drop_path=..");
    }
    overrides.push_back({"drop_path", fmt::format("{}", config.drop_path)});
  }
  return overrides;
}

/// Start values by the seed.
void start_anew(Job& job, const std::vector<Override>& overrides) {
  job.header.spec = with_overrides(named_spec(job.config.model), overrides);
  job.header.preprocessing = default_preprocessing(job.header.spec);
  job.start = models::init(job.header.spec, static_cast<uint64_t>(job.config.seed));
}

/// A model file: a head of another class count starts anew where the user says so.
models::Model loaded(const TrainConfig& config, const std::vector<Override>& overrides) {
  models::LoadOptions options;
  options.open = {config.model, overrides};
  options.is_head_reset = config.reset_head;
  options.seed = static_cast<uint64_t>(config.seed);
  return models::load(config.from, options);
}

void start_from_file(Job& job, const std::vector<Override>& overrides) {
  models::Model model = loaded(job.config, overrides);
  job.header = std::move(model.header);
  job.header.provenance = {};
  job.header.provenance.parent = models::content_hash(model.weights);
  job.start = std::move(model.weights);
  for (std::string& note : model.notes) job.notes.push_back(std::move(note));
}

void check_fit(const Job& job) {
  const ModelSpec& spec = job.header.spec;
  const auto classes = static_cast<int64_t>(job.data.val.classes.size());
  if (spec.num_classes < classes) {
    throw Error(ErrorKind::kConfig, fmt::format("num_classes: is {}, but {} has {} classes",
                                                spec.num_classes, job.config.data, classes));
  }
  if (spec.in_chans != 1 && spec.in_chans != 3) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{} takes {} channels, an image has 1 or 3", spec.name, spec.in_chans));
  }
}

void add_notes(Job& job) {
  const TrainConfig& config = job.config;
  const int64_t images = job.data.train->size();
  if (images < config.batch_size) {
    job.notes.push_back(
        fmt::format("a batch holds all {} training images, fewer than batch_size {}", images,
                    config.batch_size));
  }
  if (config.schedule.warmup_epochs >= static_cast<double>(config.epochs)) {
    job.notes.push_back(fmt::format("warmup_epochs is {:g}, so {} epochs end before lr is reached",
                                    config.schedule.warmup_epochs, config.epochs));
  }
  if (job.header.classes.empty()) {
    job.notes.push_back(fmt::format("{} outputs for {} classes: the model file names no classes",
                                    job.header.spec.num_classes, job.data.val.classes.size()));
  }
}

/// `overrides`: of the network that learns; its own file, as a teacher, is read as it was then.
std::unique_ptr<Objective> objective_of(Job& job, const std::vector<Override>& overrides) {
  const TrainConfig& config = job.config;
  if (config.distillation == DistillationKind::kNone) return std::make_unique<PlainObjective>();
  models::LoadOptions reading;
  if (config.teacher == config.from) reading.open = {config.model, overrides};
  models::Model teacher = models::load(config.teacher, reading);
  for (std::string& note : teacher.notes) job.notes.push_back("teacher: " + note);
  const auto& theirs = teacher.header.classes;
  if (!theirs.empty() && !job.header.classes.empty() && theirs != job.header.classes) {
    throw Error(ErrorKind::kConfig,
                "teacher: " + config.teacher + " has other classes, or the same in another order");
  }
  job.teacher = models::content_hash(teacher.weights);
  const DistillationOptions options{config.distillation, config.distillation_alpha,
                                    config.distillation_tau};
  return std::make_unique<DistillationObjective>(
      options, std::move(teacher.header),
      teacher.weights.to(job.compute.device, job.compute.weight_type()), job.header);
}

}  // namespace

data::DataSets open_images(const TrainConfig& config) {
  data::DataOptions options;
  options.data = config.data;
  options.val_fraction = config.val_fraction;
  options.limit_train = config.limit_train;
  options.limit_val = config.limit_val;
  options.set_aside = config.set_aside;
  return data::open_data(options);
}

Compute choose_compute(const std::string& device, const std::string& dtype, int local_rank) {
  Compute compute;
  compute.device = choose_device(device, local_rank);
  if (dtype != "auto") {
    compute.dtype = parse_dtype(dtype);
  } else if (compute.device.is_cuda()) {
    compute.dtype = torch::kBFloat16;
  }
  return compute;
}

std::string dtype_name(const Compute& compute) {
  if (compute.dtype == torch::kBFloat16) return "bf16";
  return compute.dtype == torch::kFloat64 ? "float64" : "float32";
}

int64_t choose_workers(int64_t asked, torch::Device device) {
  if (asked >= 0) return asked;
  return device.is_cuda() ? available_cpus() : std::min(2, available_cpus());
}

data::LoaderOptions evaluation_loader(const io::ModelHeader& header, int64_t batch_size,
                                      int64_t workers, torch::Device device, const Group& group) {
  data::LoaderOptions options;
  options.is_training = false;
  options.batch_size = batch_size;
  options.img_size = header.spec.img_size;
  options.channels = header.spec.in_chans;
  options.classes = header.spec.num_classes;
  options.preprocessing = header.preprocessing;
  options.workers = choose_workers(workers, device);
  options.rank = group.rank();
  options.world = group.size();
  options.device = device;
  return options;
}

data::LoaderOptions Job::loader_options(bool is_training, const Group& group) const {
  data::LoaderOptions options =
      evaluation_loader(header, config.batch_size, workers, compute.device, group);
  options.is_training = is_training;
  options.augment = config.augment;
  options.seed = static_cast<uint64_t>(config.seed);
  return options;
}

std::string spec_hash(const ModelSpec& spec) {
  return fmt::format("fnv1a:{:016x}", fnv1a(spec_to_json(spec).dump()));
}

std::vector<std::string> Job::inner_names() const {
  std::vector<std::string> names;
  for (const JudgedPart& part : judged) names.push_back(part.name);
  if (!judged.empty()) return names;
  for (const InnerNetwork& network : inner) names.push_back(network.name);
  return names;
}

Json Job::inputs() const {
  Json result = {{"network", spec_hash(header.spec)},
                 {"parent", header.provenance.parent},
                 {"teacher", teacher},
                 {"train_images", data.train->size()},
                 {"val_images", data.val.size()},
                 {"classes", data.val.classes.size()}};
  for (const InnerNetwork& network : inner) {
    result["small"].push_back(spec_hash(network.derived.spec));
  }
  return result;
}

void check_inputs(const Json& now, const Json& then, const std::string& checkpoint) {
  if (then == now) return;
  std::vector<std::string> differences;
  for (const auto& [what, value] : now.items()) {
    const Json before = then.value(what, Json());
    if (before == value) continue;
    differences.push_back(fmt::format("{} was {} and is {}", what, before.dump(), value.dump()));
  }
  throw Error(ErrorKind::kData,
              fmt::format("{}: was made from other files: {}", checkpoint,
                          differences.empty() ? "there was more than one network"
                                              : fmt::format("{}", fmt::join(differences, ", "))));
}

ModelSpec network_of(const TrainConfig& config) {
  check(config);
  const auto overrides =
      overrides_of(config, static_cast<int64_t>(open_images(config).val.classes.size()));
  if (config.from.empty()) return with_overrides(named_spec(config.model), overrides);
  return loaded(config, overrides).header.spec;
}

Job prepare(const TrainConfig& config, const Launch& launch) {
  check(config);
  Job job;
  job.config = config;
  job.compute = choose_compute(config.device, config.dtype, launch.local_rank);
  job.config.dtype = dtype_name(job.compute);
  job.workers = choose_workers(config.workers, job.compute.device);
  job.data = open_images(config);
  const auto overrides = overrides_of(config, static_cast<int64_t>(job.data.val.classes.size()));
  if (config.from.empty()) {
    start_anew(job, overrides);
  } else {
    start_from_file(job, overrides);
  }
  check_fit(job);
  const auto& classes = job.data.val.classes;
  const bool is_named = static_cast<int64_t>(classes.size()) == job.header.spec.num_classes;
  job.header.classes = is_named ? classes : std::vector<std::string>();
  add_notes(job);
  job.header.provenance.seed = config.seed;
  set_config(job, job.config);
  with_memory_advice(config, [&] { job.objective = objective_of(job, overrides); });
  return job;
}

}  // namespace adjoin::train
