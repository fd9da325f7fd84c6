#pragma once

// What a config names, found and opened: the network with its start values, the images, the device,
// the objective. Everything that can be wrong in a config is found here, before the first step.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adjoin/core/config.h"
#include "adjoin/data/dataset.h"
#include "adjoin/data/loader.h"
#include "adjoin/train/config.h"
#include "adjoin/train/evaluate.h"
#include "adjoin/train/launch.h"
#include "adjoin/train/objective.h"
#include "adjoin/train/observer.h"
#include "adjoin/train/trainer.h"

namespace adjoin::train {

/// A part of the large network that is judged after every epoch, and may be another one each time.
struct JudgedPart {
  std::string name;
  std::function<Derived(const Trainer&)> part;
};

struct Job {
  TrainConfig config;
  Json whole_config;        ///< also what a command adds to `config`; checkpoints keep it
  std::string config_text;  ///< the same as YAML
  Compute compute;
  int64_t workers = 0;
  io::ModelHeader header;
  Weights start;
  std::string name = "model";       ///< of the file that the trained network is written to
  std::vector<InnerNetwork> inner;  ///< each is written to a file of its name
  std::vector<JudgedPart> judged;   ///< instead of `inner`, and then no file is written
  data::DataSets data;
  std::unique_ptr<Objective> objective;
  std::vector<std::shared_ptr<Observer>> observers;  ///< of the first process
  /// Whether a run may end after an epoch, asked after each of them, the last one too; `time` as in
  /// Objective. Absent: after the last.
  std::function<bool(double time, const EpochReport&)> is_enough;
  std::string teacher;             ///< hash of its weights; empty without one
  std::vector<std::string> notes;  ///< what was decided for the user, a sentence each

  /// What the run is made from, by content: when it goes on these must be the same.
  Json inputs() const;

  data::LoaderOptions loader_options(bool is_training, const Group& group) const;
  Networks networks() const { return {header.spec, start, inner}; }

  /// "small-2", "small-4": of the networks that are judged besides the large one.
  std::vector<std::string> inner_names() const;
};

/// Error(kData) naming what is not as it was when a checkpoint was written.
void check_inputs(const Json& now, const Json& then, const std::string& checkpoint);

/// Error(kConfig), (kData) or (kIo) when a part is missing or does not fit the others.
Job prepare(const TrainConfig& config, const Launch& launch = {});

/// The images that a config names: to train on, and to be judged by.
data::DataSets open_images(const TrainConfig& config);

/// The network alone that a config names.
ModelSpec network_of(const TrainConfig& config);

/// A name for a network: "fnv1a:" and 16 digits.
std::string spec_hash(const ModelSpec& spec);

/// Sets `whole_config`, `config_text` and the recipe's hash.
template <class Config>
void set_config(Job& job, const Config& config) {
  job.whole_config = to_json(config);
  job.config_text = config_yaml(config);
  job.header.provenance.recipe = recipe_hash(job.whole_config);
}

/// What a command that evaluates needs of it.
Compute choose_compute(const std::string& device, const std::string& dtype, int local_rank = 0);
std::string dtype_name(const Compute& compute);  ///< as --dtype says it
int64_t choose_workers(int64_t asked, torch::Device device);
data::LoaderOptions evaluation_loader(const io::ModelHeader& header, int64_t batch_size,
                                      int64_t workers, torch::Device device, const Group& group);

}  // namespace adjoin::train
