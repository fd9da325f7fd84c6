// adjoin export: a model as an ONNX file, computed again from the file before it is called done.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/networks.h"
#include "adjoin/core/atomic_file.h"
#include "adjoin/core/signals.h"
#include "adjoin/core/table.h"
#include "adjoin/data/transform.h"
#include "adjoin/io/onnx/export.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/onnx_run.h"

namespace adjoin::cli {
namespace {

constexpr int64_t kImages = 16;      // computed on both sides
constexpr double kTolerance = 1e-4;  // of logits, in units of the largest
constexpr uint64_t kSeed = 0;

struct Comparison {
  double difference = 0;  ///< largest of a logit
  double largest = 0;     ///< logit
  int64_t agree = 0;      ///< images with the same answer

  bool is_good() const {
    return difference <= kTolerance * std::max(largest, 1.0) && agree == kImages;
  }
};

torch::Tensor random_pixels(const ModelSpec& spec) {
  torch::manual_seed(kSeed);
  return torch::randint(0, 256, {kImages, spec.img_size, spec.img_size, spec.in_chans})
      .to(torch::kUInt8);
}

Comparison compare(const std::string& path, const models::Model& model, bool has_preprocessing) {
  const torch::NoGradGuard no_grad;
  const ModelSpec& spec = model.header.spec;
  const auto pixels = random_pixels(spec);
  const auto images = data::normalised(pixels.permute({0, 3, 1, 2}).to(torch::kFloat32).div(255),
                                       model.header.preprocessing);
  Comparison result;
  constexpr int64_t kPart = 4;
  for (int64_t i = 0; i < kImages; i += kPart) {
    const auto part = images.narrow(0, i, kPart);
    const auto wanted = models::forward(spec, model.weights, part).logits();
    const auto got = models::run_onnx(path, has_preprocessing ? pixels.narrow(0, i, kPart) : part);
    const auto largest = [](const torch::Tensor& t) { return t.abs().max().item<double>(); };
    // A NaN must stay: std::max would lose it.
    const double difference = largest(got - wanted);
    if (!(difference <= result.difference)) result.difference = difference;
    result.largest = std::max(result.largest, largest(wanted));
    result.agree += (got.argmax(1) == wanted.argmax(1)).sum().item<int64_t>();
  }
  return result;
}

void check_name(const std::string& path) {
  if (!path.ends_with(".onnx")) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: the file to write must end in .onnx", path));
  }
}

/// A folder beside a file to come, gone when the object is: what is checked there and then moved
/// replaces an older file only when it is good.
class Workshop {
 public:
  explicit Workshop(const std::string& path) : target_(path) {
    for (const char* ending : {"", ".data"}) AtomicFile(path + ending);  // refuses what is no file
    std::string name = (target_.parent_path() / ".adjoin-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
    }
    folder_ = name;
  }
  ~Workshop() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  /// The file under its own name.
  std::string path() const { return folder_ / target_.filename(); }

  /// Moves all files to their place, the first one last; returns their bytes.
  int64_t deliver() const {
    uintmax_t bytes = 0;
    for (const char* ending : {".data", ""}) {
      const std::filesystem::path made = path() + ending;
      if (!std::filesystem::exists(made)) {
        ::unlink((target_.string() + ending).c_str());  // of an older export
        continue;
      }
      bytes += std::filesystem::file_size(made);
      std::error_code failure;
      std::filesystem::rename(made, target_.string() + ending, failure);
      if (failure) {
        throw Error(ErrorKind::kIo, fmt::format("{}{}: cannot be written: {}", target_.string(),
                                                ending, failure.message()));
      }
    }
    return static_cast<int64_t>(bytes);
  }

 private:
  std::filesystem::path target_;
  std::filesystem::path folder_;
};

}  // namespace

int run_export(Args args) {
  CLI::App app(
      "Writes a model as ONNX: opset 17, any batch size, class names and preprocessing inside.",
      "export");
  std::string in, out;
  ModelOptions options;
  ChoiceOptions choice;
  io::OnnxOptions onnx;
  bool is_json = false;
  app.add_option("FILE", in,
                 "a model file, .pth or Hub folder; or a name of the catalog, with start values")
      ->required();
  app.add_option("OUT", out, "the .onnx to write")->required();
  app.add_flag("--with-preprocessing", onnx.has_preprocessing,
               "the graph takes bytes (batch, height, width, channels) and normalises them; else "
               "normalised floats (batch, channels, height, width)");
  app.add_flag("--external-data", onnx.has_external_data,
               "weights in a second file, OUT.data; always so above 2 GB");
  add_choice_options(app, choice);
  add_model_options(app, options, /*has_head_reset=*/false);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  check_name(out);
  io::require_onnx();

  models::Model model = load_network(in, options, choice.text());
  model.weights = model.weights.to(torch::kCPU, torch::kFloat32);
  const auto values = [&](const std::string& name) {
    const auto tensor = model.weights.at(name).contiguous();
    const float* data = tensor.data_ptr<float>();
    return std::vector<float>(data, data + tensor.numel());
  };
  const StopSignal stop;  // what is half done is taken away, not left behind
  const Workshop workshop(out);
  io::export_onnx(workshop.path(), model.header, values, onnx);
  if (stop.received() != 0) return 128 + stop.received();
  const Comparison found = compare(workshop.path(), model, onnx.has_preprocessing);
  if (!found.is_good()) {
    throw Error(ErrorKind::kNumeric,
                fmt::format("{}: computed from the file, logits differ by {:.1e} and {} of {} "
                            "answers agree; nothing was written",
                            out, found.difference, found.agree, kImages));
  }
  if (stop.received() != 0) return 128 + stop.received();
  const int64_t bytes = workshop.deliver();
  print_notes(model.notes);
  if (is_json) {
    print_json({{"file", out},
                {"bytes", bytes},
                {"input", onnx.has_preprocessing ? "pixels" : "images"},
                {"images", kImages},
                {"difference", found.difference},
                {"agree", found.agree}});
  } else {
    Table table({"file", ">bytes", ">logits off by", ">same answer"});
    table.add({one_line(out), short_bytes(static_cast<double>(bytes)),
               fmt::format("{:.1e}", found.difference),
               fmt::format("{} of {} images", found.agree, kImages)});
    std::cout << table.text();
  }
  return 0;
}

}  // namespace adjoin::cli
