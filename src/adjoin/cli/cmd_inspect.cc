// adjoin inspect: one network, or two side by side, layer by layer.
#include <iostream>

#include "adjoin/analysis/compare.h"
#include "adjoin/analysis/depth_curves.h"
#include "adjoin/analysis/gradient_law.h"
#include "adjoin/analysis/inspect_observer.h"
#include "adjoin/analysis/laws.h"
#include "adjoin/analysis/rerun_paths.h"
#include "adjoin/cli/arguments.h"
#include "adjoin/cli/inspect_tables.h"
#include "adjoin/cli/networks.h"
#include "adjoin/core/atomic_file.h"
#include "adjoin/core/place.h"
#include "adjoin/core/progress.h"
#include "adjoin/proxy/ranking.h"
#include "adjoin/report/inspect_page.h"
#include "adjoin/tensor/device.h"

namespace adjoin::cli {
namespace {

constexpr std::string_view kTensorFile = ".safetensors";

struct InspectFlags {
  std::string first;
  std::string second;
  std::string data;
  int64_t batch_size = 16;
  int64_t seed = 0;
  int64_t alpha = 0;
  int64_t images = 2;
  int64_t sampled = 16;
  bool has_laws = false;
  bool has_paths = false;
  bool has_depth = false;
  std::string device = "auto";
  std::string dtype = "float32";
  std::string output;
  bool is_json = false;
  ModelOptions model;
};

void add_options(CLI::App& app, InspectFlags& flags) {
  app.add_option("MODEL", flags.first, "a model file, or a name of the catalog with start values")
      ->required();
  app.add_option("SECOND", flags.second, "another one, to compare");
  app.add_option("--data,--data-dir,--data-path", flags.data,
                 "images to look with (docs/data.md), or a .safetensors with input and labels "
                 "(default: random images)");
  app.add_option("--batch-size,-b", flags.batch_size, "images; at most so many of a .safetensors")
      ->check(whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--alpha", flags.alpha,
                 "what the first 1/ALPHA of every block does (0: the least it can be divided by)")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  app.add_flag("--laws", flags.has_laws, "bounds and laws of the papers beside what is measured");
  app.add_flag("--paths", flags.has_paths, "the output of attention by the length of paths");
  app.add_flag("--depth", flags.has_depth, "residuals with parts of the blocks left out");
  app.add_option("--sampled", flags.sampled, "--paths: single paths of every length")
      ->check(whole_number(1, 100'000))
      ->capture_default_str();
  app.add_option("--images", flags.images,
                 "whose tokens and attention are decomposed and, of two networks, moved onto each "
                 "other")
      ->check(whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "of start values, random images, paths and projections")
      ->check(whole_number(0, 9'000'000'000'000'000))
      ->capture_default_str();
  app.add_option("--device", flags.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--dtype", flags.dtype, "float32 or float64; laws and paths are always float64")
      ->capture_default_str();
  app.add_option("--output", flags.output, "folder for inspect.html and inspect.json")
      ->type_name("DIR");
  add_model_options(app, flags.model, /*has_head_reset=*/false);
  app.add_flag("--json", flags.is_json, "print JSON");
}

/// A network with what it is looked at with.
struct Subject {
  models::Model model;
  analysis::Sample sample;

  analysis::Network network() const { return {model.header.spec, model.weights}; }
};

class Inspector {
 public:
  explicit Inspector(const InspectFlags& flags)
      : flags_(flags), device_(choose_device(flags.device)), dtype_(parse_dtype(flags.dtype)) {
    if (dtype_ != torch::kFloat32 && dtype_ != torch::kFloat64) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--dtype: is {}, must be float32 or float64", flags.dtype));
    }
    if (flags.data.empty() || flags.data.ends_with(kTensorFile)) return;
    data::DataOptions options;
    options.data = flags.data;
    options.is_train_needed = false;
    data_ = data::open_data(options);
  }

  Json run(Progress& progress) {
    const Subject first = subject(flags_.first);
    std::optional<Subject> second;
    if (!flags_.second.empty()) {
      second = subject(flags_.second);
      check_comparable(first.model.header, second->model.header);
    }
    const int64_t steps = 1 + (second ? 2 : 0) + (flags_.has_depth ? 1 : 0) +
                          (flags_.has_paths ? 3 : 0) + (flags_.has_laws ? 4 : 0);
    progress.begin("inspect", steps);
    const auto step = [&](const char* what) { progress.update(done_++, what); };
    step("layers");
    const analysis::Inspection seen = inspected(first);
    check_alpha(seen);
    Json result = described(seen, flags_.first);
    if (second) {
      step("layers of the second");
      const analysis::Inspection other = inspected(*second);
      result["second"] = described(other, flags_.second);
      step("compare");
      result["compare"] = analysis::to_json(analysis::compare(
          seen, other, analysis::class_distances(first.network()), {flags_.images}));
    }
    if (flags_.has_depth) {
      step("depth");
      result["depth"] = to_json(analysis::depth_curves(first.network(), first.sample.images));
    }
    if (flags_.has_paths) result["paths"] = paths(first, step);
    if (flags_.has_laws) result["laws"] = laws(first, step);
    progress.finish("");
    return result;
  }

 private:
  Subject subject(const std::string& name) const {
    const auto seed = static_cast<uint64_t>(flags_.seed);
    models::Model model = load_network(name, flags_.model, {}, seed);
    print_notes(model.notes);
    analysis::Sample sample;
    if (data_) {
      sample = analysis::fixed_sample(data_->val, model.header, flags_.batch_size, device_);
    } else if (!flags_.data.empty()) {
      sample = analysis::stored_sample(flags_.data, model.header, flags_.batch_size, device_);
    } else {
      const auto random = proxy::random_batches(model.header.spec, flags_.batch_size, 1, seed)[0];
      sample = {random.images.to(device_), random.labels.to(device_), {}};
    }
    for (const std::string& image : sample.unreadable) {
      print_notes({image + " cannot be read and is left out"});
    }
    sample.images = sample.images.to(dtype_);
    model.weights = model.weights.to(device_, dtype_);
    return {std::move(model), std::move(sample)};
  }

  analysis::Inspection inspected(const Subject& subject) const {
    analysis::InspectOptions options;
    options.alpha = flags_.alpha;
    options.images = flags_.images;
    return analysis::inspect(subject.network(), subject.sample, options);
  }

  /// Both must see the same images and mean the same classes.
  void check_comparable(const io::ModelHeader& a, const io::ModelHeader& b) const {
    const bool is_alike = a.spec.img_size == b.spec.img_size && a.spec.in_chans == b.spec.in_chans;
    if (flags_.data.empty() && !is_alike) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--data: is needed to compare {}, which takes {}x{}x{}, with {}, "
                              "which takes {}x{}x{}",
                              a.spec.name, a.spec.in_chans, a.spec.img_size, a.spec.img_size,
                              b.spec.name, b.spec.in_chans, b.spec.img_size, b.spec.img_size));
    }
    if (!a.classes.empty() && !b.classes.empty() && a.classes != b.classes) {
      throw Error(ErrorKind::kData,
                  fmt::format("{} and {} have classes of other names or in another order",
                              flags_.first, flags_.second));
    }
  }

  void check_alpha(const analysis::Inspection& seen) const {
    for (const analysis::LayerReport& layer : seen.layers) {
      if (flags_.alpha < 2 || (layer.block && layer.block->first_part)) return;
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("--alpha: {} divides heads and hidden units of no block of {}",
                            flags_.alpha, seen.model));
  }

  Json described(const analysis::Inspection& seen, const std::string& name) const {
    Json json = analysis::to_json(seen);
    if (is_checkpoint_path(name)) json["file"] = name;
    json["data"] = flags_.data.empty() ? "random images" : flags_.data;
    json["dtype"] = flags_.dtype;
    json["seed"] = flags_.seed;
    return json;
  }

  template <class Step>
  Json paths(const Subject& subject, Step step) const {
    step("paths");
    const auto image = subject.sample.images.narrow(0, 0, 1);
    const analysis::PathOptions options{flags_.sampled, static_cast<uint64_t>(flags_.seed)};
    const analysis::AttentionStack stack = analysis::attention_stack(subject.network(), image, {});
    Json json = analysis::paths_json(stack, options);
    json["image"] = 0;
    json["norms"] = "frozen";
    step("paths without skips");
    json["without_skips"] = analysis::paths_json(
        analysis::attention_stack(subject.network(), image, {true, false}), options);
    step("paths run again");
    json["rerun"] =
        analysis::to_json(analysis::rerun_paths(subject.network(), stack, subject.sample, options));
    return json;
  }

  template <class Step>
  Json laws(const Subject& subject, Step step) const {
    step("laws");
    Json json =
        analysis::to_json(analysis::laws(subject.network(), subject.sample.images.narrow(0, 0, 1),
                                         static_cast<uint64_t>(flags_.seed)));
    const analysis::GradientLawOptions options;
    for (const NormPlacement norm :
         {NormPlacement::kPre, NormPlacement::kPost, NormPlacement::kResPost}) {
      step("gradients by depth and width");
      json["slopes"].push_back(analysis::to_json(analysis::gradient_law(norm, options), options));
    }
    return json;
  }

  const InspectFlags& flags_;
  torch::Device device_;
  torch::ScalarType dtype_;
  std::optional<data::DataSets> data_;
  int64_t done_ = 0;
};

void write_files(const std::string& folder, const Json& result) {
  const auto write = [&](const char* name, const std::string& text) {
    AtomicFile file(fmt::format("{}/{}", folder, name));
    file.write(text);
    file.commit();
  };
  write("inspect.json", result.dump(2) + "\n");
  write("inspect.html", report::inspect_page(result));
}

}  // namespace

int run_inspect(Args args) {
  CLI::App app(
      "Looks inside a network: how much of the tokens' variety every layer leaves, what attention "
      "sees, how gradients flow.",
      "inspect");
  InspectFlags flags;
  add_options(app, flags);
  if (!parse(app, args)) return 0;
  if (!flags.output.empty()) make_folders(flags.output);
  Progress progress(std::cerr);
  const Json result = Inspector(flags).run(progress);
  if (!flags.output.empty()) write_files(flags.output, result);
  if (flags.is_json) {
    print_json(result);
    return 0;
  }
  print_inspection(std::cout, result);
  if (!flags.output.empty()) std::cout << "page: " << flags.output << "/inspect.html\n";
  return 0;
}

}  // namespace adjoin::cli
