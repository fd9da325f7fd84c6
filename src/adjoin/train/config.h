#pragma once

// Everything a user can say about a training run. One list of fields gives the flags of the command
// line with their help, the keys of a recipe and config.yaml in the run folder. Names are timm's
// and DeiT's.

#include <string>
#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/data/augment.h"

namespace adjoin::train {

enum class OptimizerKind { kAdamW, kSgd };
enum class ScheduleKind { kCosine, kConstant, kStep };
enum class DistillationKind { kNone, kSoft, kHard, kMse };

}  // namespace adjoin::train

namespace adjoin {

template <>
inline constexpr auto kEnumNames<train::OptimizerKind> =
    std::to_array<EnumName<train::OptimizerKind>>({{"adamw", train::OptimizerKind::kAdamW},
                                                   {"sgd", train::OptimizerKind::kSgd}});

template <>
inline constexpr auto kEnumNames<train::ScheduleKind> =
    std::to_array<EnumName<train::ScheduleKind>>({{"cosine", train::ScheduleKind::kCosine},
                                                  {"constant", train::ScheduleKind::kConstant},
                                                  {"step", train::ScheduleKind::kStep}});

template <>
inline constexpr auto kEnumNames<train::DistillationKind> =
    std::to_array<EnumName<train::DistillationKind>>({{"none", train::DistillationKind::kNone},
                                                      {"soft", train::DistillationKind::kSoft},
                                                      {"hard", train::DistillationKind::kHard},
                                                      {"mse", train::DistillationKind::kMse}});

}  // namespace adjoin

namespace adjoin::train {

struct OptimizerOptions {
  OptimizerKind opt = OptimizerKind::kAdamW;
  double lr = 5e-4;
  double weight_decay = 0.05;
  std::vector<double> opt_betas = {0.9, 0.999};
  double opt_eps = 1e-8;
  double momentum = 0.9;
  double layer_decay = 1;
  double clip_grad = 0;
};

template <class Visitor>
void fields(Visitor& visit, OptimizerOptions& options) {
  visit("opt", options.opt, {}, "adamw or sgd (with Nesterov momentum)");
  visit("lr", options.lr, Range{0, 1e9}, "highest learning rate, whatever the batch size");
  visit("weight_decay", options.weight_decay, Range{0, 10}, "decoupled (adamw) or added (sgd)");
  visit("opt_betas", options.opt_betas, Range{0, 0.999999}, "adamw: the two decay rates");
  visit("opt_eps", options.opt_eps, Range{1e-16, 1}, "adamw: added to the denominator");
  visit("momentum", options.momentum, Range{0, 0.9999}, "sgd");
  visit("layer_decay", options.layer_decay, Range{0.01, 1},
        "each block below the head learns by this factor slower");
  visit("clip_grad", options.clip_grad, Range{0, 1e9}, "largest norm of all gradients; 0: off");
}

struct ScheduleOptions {
  ScheduleKind sched = ScheduleKind::kCosine;
  double warmup_epochs = 5;
  double warmup_lr = 1e-6;
  double min_lr = 1e-5;
  double decay_epochs = 30;
  double decay_rate = 0.1;
};

template <class Visitor>
void fields(Visitor& visit, ScheduleOptions& options) {
  visit("sched", options.sched, {}, "learning rate over time: cosine, constant or step");
  visit("warmup_epochs", options.warmup_epochs, Range{0, 1e6}, "rising linearly to --lr");
  visit("warmup_lr", options.warmup_lr, Range{0, 100}, "where the rise begins");
  visit("min_lr", options.min_lr, Range{0, 100}, "where the cosine ends");
  visit("decay_epochs", options.decay_epochs, Range{1e-3, 1e6}, "step: between two drops");
  visit("decay_rate", options.decay_rate, Range{0, 1}, "step: factor of a drop");
}

struct TrainConfig {
  std::string model;
  std::vector<std::string> set;
  std::string data;
  std::string from;
  bool reset_head = true;
  int64_t epochs = 300;
  int64_t batch_size = 128;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  int64_t grad_accum_steps = 1;
  bool grad_checkpointing = false;
  bool cuda_graph = true;
  double drop = 0;
  double drop_path = -1;
  bool model_ema = false;
  double model_ema_decay = 0.99996;
  std::string teacher;
  DistillationKind distillation = DistillationKind::kNone;
  double distillation_alpha = 0.5;
  double distillation_tau = 1;
  data::AugmentOptions augment;
  double val_fraction = 0;
  int64_t limit_train = 0;
  int64_t limit_val = 0;
  double max_bad_images = 0.001;
  int64_t seed = 0;
  std::string device = "auto";
  std::string dtype = "auto";
  int64_t workers = -1;
  int64_t log_interval = 50;
  int64_t checkpoint_interval = 0;
  int64_t inspect_interval = 0;
  double set_aside = 0;  ///< no field: a search judges by this share of the training images
};

template <class Visitor>
void fields(Visitor& visit, TrainConfig& config) {
  visit("model", config.model, {}, "a name of the catalog, or a file with a spec (.json, .yaml)");
  visit("set", config.set, {}, "changes of the model, KEY=VALUE as in --set");
  visit("data", config.data, {},
        "what to learn from (docs/data.md): fashion-mnist, folder:DIR, ..");
  visit("from", config.from, {}, "a model file to start from");
  visit("reset_head", config.reset_head, {},
        "a head of another number of classes starts anew; else it is refused");
  visit("epochs", config.epochs, Range{1, 1e6}, "passes over the training images");
  visit("batch_size", config.batch_size, Range{1, 1e6},
        "images per step, of all processes together");
  fields(visit, config.optimizer);
  fields(visit, config.schedule);
  visit("grad_accum_steps", config.grad_accum_steps, Range{1, 65536},
        "parts a batch is computed in: less memory, the same step");
  visit("grad_checkpointing", config.grad_checkpointing, {},
        "compute blocks twice instead of keeping their activations");
  visit("cuda_graph", config.cuda_graph, {},
        "on a GPU: record the step once and replay it, which needs more memory");
  visit("drop", config.drop, Range{0, 0.99}, "dropout");
  visit("drop_path", config.drop_path, Range{-1, 0.99},
        "stochastic depth, rising to this in the last block; -1: as the model has it");
  visit("model_ema", config.model_ema, {}, "also average the weights, and report those");
  visit("model_ema_decay", config.model_ema_decay, Range{0, 1}, "of the average");
  visit("teacher", config.teacher, {}, "a model file to distil from");
  visit("distillation", config.distillation, {},
        "none, soft (logits at a temperature), hard (the teacher's label) or mse (logits)");
  visit("distillation_alpha", config.distillation_alpha, Range{0, 1},
        "share of the teacher's loss");
  visit("distillation_tau", config.distillation_tau, Range{1e-3, 1e3}, "soft: temperature");
  fields(visit, config.augment);
  visit("val_fraction", config.val_fraction, Range{0, 0.9},
        "of a set without a validation split, hold out this much");
  visit("limit_train", config.limit_train, Range{0, 1e12},
        "so many training images, evenly over the classes; 0: all");
  visit("limit_val", config.limit_val, Range{0, 1e12}, "likewise for validation");
  visit("max_bad_images", config.max_bad_images, Range{0, 1},
        "share of images that may be unreadable");
  visit("seed", config.seed, Range{0, 9e15}, "of start values, order and augmentation");
  visit("device", config.device, {}, "auto, cpu, cuda or cuda:N");
  visit("dtype", config.dtype, {}, "auto (bf16 on a GPU, else float32), float32, float64, bf16");
  visit("workers", config.workers, Range{-1, 1024}, "threads that read images; -1: as suits");
  visit("log_interval", config.log_interval, Range{1, 1e9}, "steps between two lines of the log");
  visit("checkpoint_interval", config.checkpoint_interval, Range{0, 1e9},
        "steps between checkpoints, besides one per epoch; 0: none");
  visit("inspect_interval", config.inspect_interval, Range{0, 1e6},
        "epochs between two looks inside the networks (docs/inspect.md); 0: none");
}

/// Fields that may change when a run goes on: they say where and how it is computed, not what. The
/// files they name are compared by content.
bool is_free_to_change(std::string_view field);

/// Error(kConfig) naming the two fields that cannot stand together, or one that is missing.
void check(const TrainConfig& config);

/// Of what was computed with: "fnv1a:" and 16 digits. No path, device or thread count goes in.
std::string recipe_hash(const Json& config);

}  // namespace adjoin::train
