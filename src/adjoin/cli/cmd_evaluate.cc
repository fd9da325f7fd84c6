// adjoin evaluate: the accuracy of a model file on images with labels.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/core/progress.h"
#include "adjoin/core/table.h"
#include "adjoin/models/load.h"
#include "adjoin/train/evaluate.h"
#include "adjoin/train/job.h"

namespace adjoin::cli {
namespace {

struct EvaluateOptions {
  std::string file;
  std::string data;
  std::string device = "auto";
  std::string dtype = "auto";
  int64_t batch_size = 64;
  int64_t limit_val = 0;
  int64_t workers = -1;
  double max_bad_images = 0.001;
  bool is_json = false;
  ModelOptions model;
};

void add_options(CLI::App& app, EvaluateOptions& options) {
  app.add_option("FILE", options.file, "a model file")->required();
  app.add_option("--data,--data-dir,--data-path", options.data,
                 "what to evaluate on (docs/data.md); the validation split where there are several")
      ->required();
  app.add_option("--batch-size,-b", options.batch_size, "images at a time")
      ->check(whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--limit-val", options.limit_val,
                 "so many images, evenly over the classes (0: all)")
      ->check(whole_number(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--workers,-j", options.workers, "threads that read images (-1: as suits)")
      ->check(whole_number(-1, 1024))
      ->capture_default_str();
  app.add_option("--max-bad-images", options.max_bad_images, "share that may be unreadable")
      ->check(real_number(0, 1))
      ->capture_default_str();
  app.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--dtype", options.dtype, "auto (bf16 on a GPU), float32, float64 or bf16")
      ->capture_default_str();
  add_model_options(app, options.model, /*has_head_reset=*/false);
  app.add_flag("--json", options.is_json, "print JSON");
}

void check_unreadable(const train::Evaluation& result, const data::Loader& loader, double most) {
  if (result.images == 0) {
    throw Error(ErrorKind::kData, loader.split().name + ": no image of it can be read");
  }
  if (result.unreadable == 0) return;
  const auto all = static_cast<double>(result.images + result.unreadable);
  const std::vector<int64_t> which = loader.unreadable();
  for (size_t i = 0; i < std::min<size_t>(which.size(), 10); ++i) {
    print_notes({loader.split().describe(which[i]) + " cannot be read and is left out"});
  }
  if (static_cast<double>(result.unreadable) <= most * all) return;
  throw Error(ErrorKind::kData,
              fmt::format("{}: {} of {} images cannot be read; --max-bad-images allows {:g} %",
                          loader.split().name, result.unreadable, all, 100 * most));
}

}  // namespace

int run_evaluate(Args args) {
  CLI::App app("Says how often a model is right.", "evaluate");
  EvaluateOptions options;
  add_options(app, options);
  if (!parse(app, args)) return 0;
  const train::Launch launch = train::launch_from_environment();
  const train::Compute compute =
      train::choose_compute(options.device, options.dtype, launch.local_rank);
  models::Model model = models::load(options.file, {options.model.open(), false});
  if (launch.rank == 0) print_notes(model.notes);
  data::DataOptions data_options;
  data_options.data = options.data;
  data_options.limit_val = options.limit_val;
  data_options.is_train_needed = false;
  data::DataSets sets = data::open_data(data_options);
  train::check_classes(model.header, sets.val, options.file);
  train::Group group = train::Group::join(launch, compute.device);
  data::Loader loader(std::move(sets.val),
                      train::evaluation_loader(model.header, options.batch_size, options.workers,
                                               compute.device, group));
  const Weights weights = model.weights.to(compute.device, compute.weight_type());
  Progress progress(std::cerr, group.is_first() ? ProgressStyle::kAuto : ProgressStyle::kSilent);
  progress.begin("evaluate", loader.steps());
  const train::Evaluation result =
      train::evaluate({{model.header.spec, weights, model.header.spec.name}}, loader, compute,
                      group, [&](int64_t done) { progress.update(done, ""); })
          .front();
  progress.finish("");
  if (!group.is_first()) return 0;
  check_unreadable(result, loader, options.max_bad_images);
  if (options.is_json) {
    Json json = to_json(result);
    json.erase("seconds");
    json["images_per_second"] = result.images_per_second();
    print_json(json);
    return 0;
  }
  Table table({"model", ">top1 %", ">top5 %", ">loss", ">images", ">img/s"});
  table.add({model.header.spec.name, fmt::format("{:.3f}", result.top1),
             fmt::format("{:.3f}", result.top5), fmt::format("{:.4f}", result.loss),
             with_commas(result.images),
             with_commas(static_cast<int64_t>(result.images_per_second()))});
  std::cout << table.text();
  return 0;
}

}  // namespace adjoin::cli
