#pragma once

// What a config names, found and opened: the network with its start values, the images, the device,
// the objective. Everything that can be wrong in a config is found here, before the first step.

#include <memory>
#include <string>
#include <vector>

#include "adjoin/data/dataset.h"
#include "adjoin/data/loader.h"
#include "adjoin/train/config.h"
#include "adjoin/train/launch.h"
#include "adjoin/train/objective.h"
#include "adjoin/train/trainer.h"

namespace adjoin::train {

struct Job {
  TrainConfig config;
  Compute compute;
  int64_t workers = 0;
  io::ModelHeader header;
  Weights start;
  data::DataSets data;
  std::unique_ptr<Objective> objective;
  std::string teacher;             ///< hash of its weights; empty without one
  std::vector<std::string> notes;  ///< what was decided for the user, a sentence each

  /// What the run is made from, by content: when it goes on these must be the same.
  Json inputs() const;

  data::LoaderOptions loader_options(bool is_training, const Group& group) const;
};

/// Error(kConfig), (kData) or (kIo) when a part is missing or does not fit the others.
Job prepare(const TrainConfig& config, const Launch& launch = {});

/// What a command that evaluates needs of it.
Compute choose_compute(const std::string& device, const std::string& dtype, int local_rank = 0);
int64_t choose_workers(int64_t asked, torch::Device device);
data::LoaderOptions evaluation_loader(const io::ModelHeader& header, int64_t batch_size,
                                      int64_t workers, torch::Device device, const Group& group);

}  // namespace adjoin::train
