#include "adjoin/train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>

#include "adjoin/core/error.h"
#include "adjoin/core/stopwatch.h"
#include "adjoin/models/load.h"
#include "adjoin/models/slice.h"
#include "adjoin/tensor/device.h"
#include "adjoin/train/checkpoint.h"
#include "adjoin/train/machine.h"
#include "adjoin/train/memory_advice.h"
#include "adjoin/train/predictions.h"
#include "adjoin/train/run_log.h"
#include "adjoin/train/run_state.h"
#include "adjoin/train/schedule.h"

namespace adjoin::train {
namespace {

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Thrown out of an evaluation, and caught where it was begun.
struct Interrupted {
  int signal;
};

/// One run in progress.
class Run {
 public:
  Run(Job& job, const RunOptions& options)
      : job_(job),
        options_(options),
        inputs_(job.inputs()),
        group_(options.group != nullptr ? *options.group : alone_),
        train_(std::move(*job.data.train), job.loader_options(true, group_)),
        val_(std::move(job.data.val), job.loader_options(false, group_)),
        trainer_(job.networks(), job.config, *job.objective, job.compute, group_),
        schedule_(job.config.schedule, job.config.optimizer.lr, job.config.epochs, train_.steps()) {
    state_.steps_per_epoch = train_.steps();
    check_same_images();
  }

  RunResult go();

 private:
  Position position() const {
    return {state_.epoch, job_.config.epochs, state_.step, state_.steps_per_epoch};
  }
  double seconds() const { return state_.seconds + watch_.seconds(); }
  bool is_report_due() const;
  int stop_signal();
  void check_same_images();

  void epoch();
  void step();
  void report(double lr);
  void finish_epoch();
  std::vector<EvaluatedNetwork> judged_networks(std::deque<Derived>& parts) const;
  std::vector<Evaluation> evaluated();
  void write_models() const;
  double time() const {
    return static_cast<double>(state_.epoch) / static_cast<double>(job_.config.epochs);
  }
  void write_epoch(const EpochReport& report);
  void write_log(Json line);

  void take_note_of(const std::vector<int64_t>& images, const data::Loader& loader);
  void check_unreadable(const data::Loader& loader) const;

  void save();
  void restore();

  template <class Tell>
  void tell(Tell call) {
    for (Observer* observer : options_.observers) call(*observer);
  }

  Job& job_;
  const RunOptions& options_;
  const Json inputs_;
  Group alone_;
  Group& group_;
  data::Loader train_;
  data::Loader val_;
  Trainer trainer_;
  Schedule schedule_;
  RunState state_;
  int stopped_by_ = 0;
  double saved_seconds_ = 0;
  Stopwatch watch_;
  Stopwatch since_report_;
};

RunResult Run::go() {
  if (!options_.checkpoint.empty()) {
    restore();
  } else if (options_.folder != nullptr) {
    options_.folder->cut_log(0);  // of a run that was killed before its first checkpoint
  }
  while (!state_.is_complete && stopped_by_ == 0) epoch();
  // As the checkpoint has it: the same in all processes, and when a complete run is asked again.
  auto spent = torch::full({1}, saved_seconds_, torch::kFloat64);
  group_.broadcast(spent);
  if (stopped_by_ == 0 && options_.folder != nullptr && job_.judged.empty()) write_models();
  return {state_.evaluations, state_.best_top1,     state_.best_epoch,
          state_.epoch,       spent.item<double>(), stopped_by_};
}

/// The large network, and those inside it as models of their own.
void Run::write_models() const {
  const Weights large = trainer_.judged_weights();
  models::save(*options_.folder / (job_.name + ".safetensors"), job_.header, large);
  io::ModelHeader header = job_.header;
  if (!job_.inner.empty()) header.provenance.parent = models::content_hash(large);
  for (size_t i = 0; i < job_.inner.size(); ++i) {
    const auto& [name, derived, own, lr_scale] = job_.inner[i];
    header.spec = derived.spec;
    models::save(*options_.folder / (name + ".safetensors"), header,
                 models::plain(derived, trainer_.judged_weights(i + 1)));
  }
}

/// Processes with other images would wait for each other for good.
void Run::check_same_images() {
  const auto sizes = torch::tensor({train_.split().size(), val_.split().size()}, torch::kInt64);
  auto sum = sizes.clone();
  group_.sum(sum);
  if (torch::equal(sum, sizes * group_.size())) return;
  throw Error(ErrorKind::kData,
              fmt::format("{}: has {} images here, and another number for another process",
                          train_.split().name, train_.split().size()));
}

bool Run::is_report_due() const {
  return state_.step == state_.steps_per_epoch ||
         position().steps_done() % job_.config.log_interval == 0;
}

/// Whether to stop, the same answer in every process.
int Run::stop_signal() {
  const int mine = options_.stop != nullptr ? options_.stop->received() : 0;
  if (group_.size() == 1) return mine;
  // On a GPU asking costs a wait for the device: not in every step.
  if (job_.compute.device.is_cuda() && !is_report_due()) return 0;
  constexpr int64_t kMostSignals = 65;
  auto seen = torch::zeros(kMostSignals, torch::kInt64);
  if (mine != 0) seen[mine] = 1;
  group_.sum(seen);
  const auto first = seen.nonzero();
  return first.numel() == 0 ? 0 : first[0][0].item<int>();
}

void Run::epoch() {
  train_.begin(state_.epoch, state_.step);
  since_report_ = {};
  while (state_.step < state_.steps_per_epoch) {
    step();
    stopped_by_ = stop_signal();
    const int64_t interval = job_.config.checkpoint_interval;
    const bool is_due = interval > 0 && position().steps_done() % interval == 0;
    if (stopped_by_ != 0 || (is_due && state_.step < state_.steps_per_epoch)) save();
    if (stopped_by_ != 0) return;
  }
  finish_epoch();
}

void Run::step() {
  const data::Batch batch = train_.next();
  take_note_of(batch.unreadable, train_);
  const int64_t index = position().steps_done();
  const double lr = schedule_.lr(index);
  trainer_.step(batch, {train_.batch_size(state_.step), index, lr, time()});
  ++state_.step;
  tell([&](Observer& o) { o.on_step(position()); });
  if (is_report_due()) report(lr);
}

void Run::report(double lr) {
  StepReport report{trainer_.read(), lr, 0};
  const double elapsed = since_report_.seconds();
  since_report_ = {};
  report.images_per_second = static_cast<double>(report.metrics.images) / std::max(elapsed, 1e-9);
  state_.epoch_loss += report.metrics.loss * static_cast<double>(report.metrics.images);
  state_.epoch_images += report.metrics.images;
  write_log(step_line(position(), report, job_.objective->terms()));
  tell([&](Observer& o) { o.on_report(position(), report, trainer_); });
}

void Run::finish_epoch() {
  EpochReport report;
  report.train_loss =
      state_.epoch_loss / static_cast<double>(std::max<int64_t>(state_.epoch_images, 1));
  report.lr = schedule_.lr(position().steps_done() - 1);
  const std::vector<int64_t> known = val_.unreadable();
  try {
    report.evaluations = evaluated();
  } catch (const Interrupted& interrupted) {
    stopped_by_ = interrupted.signal;
    return save();
  }
  std::vector<int64_t> news = val_.unreadable();
  std::erase_if(news, [&](int64_t image) {
    return std::find(known.begin(), known.end(), image) != known.end();
  });
  take_note_of(news, val_);
  check_unreadable(train_);
  check_unreadable(val_);
  const double top1 = report.evaluations[0].top1;
  report.is_best = state_.epoch == 0 || top1 > state_.best_top1;
  if (report.is_best) {
    state_.best_top1 = top1;
    state_.best_epoch = state_.epoch;
  }
  state_.evaluations = report.evaluations;
  report.seconds = seconds();
  const bool is_enough = job_.is_enough && job_.is_enough(time(), report);
  state_.is_complete = is_enough || state_.epoch + 1 == job_.config.epochs;
  write_epoch(report);
  tell([&](Observer& o) { o.on_epoch(position(), report, trainer_); });
  state_.step = 0;
  ++state_.epoch;
  state_.epoch_loss = 0;
  state_.epoch_images = 0;
  save();
}

/// The large one first. They refer to `parts`.
std::vector<EvaluatedNetwork> Run::judged_networks(std::deque<Derived>& parts) const {
  const std::vector<std::string> inner = job_.inner_names();
  std::vector<EvaluatedNetwork> networks = {
      {trainer_.spec(), trainer_.judged_weights(), job_.name}};
  for (const JudgedPart& part : job_.judged) {
    const Derived& derived = parts.emplace_back(part.part(trainer_));
    networks.push_back({derived.spec, models::views(derived, networks[0].weights), part.name});
  }
  for (size_t i = 0; i < inner.size() && job_.judged.empty(); ++i) {
    networks.push_back({trainer_.spec(i + 1), trainer_.judged_weights(i + 1), inner[i]});
  }
  return networks;
}

/// Evaluation can take long: alone, a process leaves it when it is told to stop. The checkpoint
/// then stands before it.
std::vector<Evaluation> Run::evaluated() {
  const auto progress = [&](int64_t done) {
    tell([&](Observer& o) { o.on_evaluation_step(position(), done, val_.steps()); });
    const int signal = options_.stop != nullptr ? options_.stop->received() : 0;
    if (signal != 0 && group_.size() == 1) throw Interrupted{signal};
  };
  std::deque<Derived> parts;
  const std::vector<EvaluatedNetwork> networks = judged_networks(parts);
  std::vector<std::string> names;
  for (const EvaluatedNetwork& network : networks) names.push_back(network.name);
  Predictions predictions(job_.header, names);
  const auto result = evaluate(networks, val_, job_.compute, group_, progress, &predictions);
  if (options_.folder != nullptr) {
    options_.folder->write("predictions.json", predictions.to_json().dump());
  }
  return result;
}

void Run::write_epoch(const EpochReport& report) {
  const std::vector<std::string> small = job_.inner_names();
  Json line = epoch_line(position(), report, small);
  if (!options_.observers.empty()) {
    std::deque<Derived> parts;
    const std::vector<EvaluatedNetwork> networks = judged_networks(parts);
    const EpochEnd end{position(), state_.is_complete, trainer_, networks};
    tell([&](Observer& o) { line.update(o.epoch_fields(end)); });
  }
  write_log(std::move(line));
  state_.summary += summary_row(position(), report);
  if (options_.folder == nullptr) return;
  options_.folder->write("summary.csv", summary_heading(small) + state_.summary);
  if (report.is_best && small.empty()) {
    models::save(*options_.folder / "best.safetensors", job_.header, trainer_.judged_weights());
  }
}

void Run::write_log(Json line) {
  if (options_.folder == nullptr) return;
  line["seconds"] = seconds();
  line["time"] = unix_time();
  options_.folder->log(line);
}

/// Names images that cannot be read, each process its own, and stops when they are too many.
void Run::take_note_of(const std::vector<int64_t>& images, const data::Loader& loader) {
  for (const int64_t image : images) {
    const std::string which = loader.split().describe(image);
    write_log({{"kind", "unreadable"}, {"image", which}});
    tell([&](Observer& o) { o.on_note(which + " cannot be read and is left out"); });
  }
  if (!images.empty() && group_.size() == 1) check_unreadable(loader);
}

/// Every process asks: each has met images of its own.
void Run::check_unreadable(const data::Loader& loader) const {
  const std::vector<int64_t> known = loader.unreadable();
  auto sum = torch::tensor({static_cast<int64_t>(known.size())}, torch::kInt64);
  group_.sum(sum);
  const auto count = sum.item<int64_t>();
  const auto images = loader.split().size();
  if (static_cast<double>(count) <= job_.config.max_bad_images * static_cast<double>(images))
    return;
  throw Error(ErrorKind::kData,
              fmt::format("{}: {} of {} images cannot be read{}; --max-bad-images allows {:g} %",
                          loader.split().name, count, images,
                          known.empty() ? "" : ", such as " + loader.split().describe(known[0]),
                          100 * job_.config.max_bad_images));
}

void Run::save() {
  trainer_.check_finite();
  const torch::Tensor pending = trainer_.pending();
  if (options_.folder == nullptr) return;
  RunState now = state_;
  now.steps_taken = trainer_.steps_taken();
  now.unreadable = train_.unreadable();
  now.unreadable_val = val_.unreadable();
  now.log_bytes = options_.folder->sync_log();
  now.seconds = saved_seconds_ = seconds();
  NamedTensors tensors = trainer_.state();
  tensors.emplace_back("pending", pending);
  save_checkpoint(*options_.folder / "last.ckpt",
                  {{"run", adjoin::to_json(now)},
                   {"config", job_.whole_config},
                   {"inputs", inputs_},
                   {"machine", machine()}},
                  tensors);
}

void Run::restore() {
  const std::string& path = options_.checkpoint;
  const Json stored = read_checkpoint_state(path);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kData, path + ": " + what);
  };
  RunState then;
  try {
    from_json(stored.at("run"), then, "run");
  } catch (const Error& e) {
    refuse(e.what());
  }
  check_inputs(inputs_, stored.at("inputs"), path);
  if (then.steps_per_epoch != state_.steps_per_epoch || then.step > then.steps_per_epoch ||
      then.epoch > job_.config.epochs || (then.epoch == job_.config.epochs && !then.is_complete)) {
    refuse(fmt::format("stands at epoch {}, step {} of {}; this run has {} epochs of {} steps",
                       then.epoch, then.step, then.steps_per_epoch, job_.config.epochs,
                       state_.steps_per_epoch));
  }
  if (then.evaluations.size() != (then.epoch == 0 ? 0 : job_.inner_names().size() + 1)) {
    refuse(fmt::format("holds {} evaluations", then.evaluations.size()));
  }
  const auto check_images = [&](const std::vector<int64_t>& images, const data::Loader& loader) {
    for (const int64_t image : images) {
      if (image >= loader.split().size()) refuse(fmt::format("names an image {}", image));
    }
  };
  check_images(then.unreadable, train_);
  check_images(then.unreadable_val, val_);
  NamedTensors tensors = trainer_.state();
  tensors.emplace_back("pending", trainer_.pending());
  restore_tensors(path, tensors);
  trainer_.set_pending(tensors.back().second);
  trainer_.set_steps_taken(then.steps_taken);
  train_.set_unreadable(then.unreadable);
  val_.set_unreadable(then.unreadable_val);
  if (options_.folder != nullptr) options_.folder->cut_log(then.log_bytes);
  state_ = std::move(then);
  saved_seconds_ = state_.seconds;
  for (const std::string& difference : machine_differences(stored.at("machine"))) {
    tell([&](Observer& o) { o.on_note(difference); });
  }
}

}  // namespace

RunResult run(Job& job, const RunOptions& options) {
  RunResult result;
  with_memory_advice(job.config, [&] { result = Run(job, options).go(); });
  return result;
}

}  // namespace adjoin::train
