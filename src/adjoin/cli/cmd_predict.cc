// adjoin predict: what a model says of images.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/core/table.h"
#include "adjoin/data/inputs.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/load.h"
#include "adjoin/tensor/device.h"

namespace adjoin::cli {
namespace {

struct PredictOptions {
  std::string device = "cpu";
  std::string dtype = "float32";
  int64_t top = 5;
  int64_t batch_size = 16;
};

/// Runs a network on inputs, a batch at a time.
class Predictor {
 public:
  Predictor(models::Model model, const PredictOptions& options)
      : model_(std::move(model)),
        options_(options),
        device_(parse_device(options.device)),
        dtype_(parse_dtype(options.dtype)) {
    const bool is_bf16 = dtype_ == torch::kBFloat16;
    stored_ = is_bf16 ? torch::kFloat32 : dtype_;
    model_.weights = model_.weights.to(device_, stored_);
  }

  /// Logits (B, classes), float64 on the CPU. Error(kNumeric) where they are not finite.
  torch::Tensor logits(const std::vector<data::Input>& inputs) {
    const torch::NoGradGuard no_grad;
    const Autocast autocast(device_, dtype_ == torch::kBFloat16);
    std::vector<torch::Tensor> images;
    for (const data::Input& input : inputs) images.push_back(input.image);
    nn::Context context;
    context.constants = &constants_;
    auto result = models::forward(model_.header.spec, model_.weights,
                                  torch::stack(images).to(device_, stored_), context)
                      .logits()
                      .to(torch::kCPU, torch::kFloat64);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!result[static_cast<int64_t>(i)].isfinite().all().item<bool>()) {
        throw Error(ErrorKind::kNumeric,
                    inputs[i].name + ": the network answers with NaN or infinity");
      }
    }
    return result;
  }

  /// The answers to all inputs, in the words of `adjoin predict --json`.
  Json predictions(const std::vector<std::string>& paths) {
    Json result = Json::array();
    std::vector<data::Input> waiting;
    const auto flush = [&] {
      if (waiting.empty()) return;
      const auto batch = logits(waiting);
      for (size_t i = 0; i < waiting.size(); ++i) {
        result.push_back(answer(waiting[i].name, batch[static_cast<int64_t>(i)]));
      }
      waiting.clear();
    };
    for (const std::string& path : paths) {
      for (data::Input& input : data::read_inputs(path, model_.header)) {
        waiting.push_back(std::move(input));
        if (static_cast<int64_t>(waiting.size()) == options_.batch_size) flush();
      }
    }
    flush();
    return result;
  }

 private:
  Json answer(const std::string& name, const torch::Tensor& logits) const {
    const auto probabilities = torch::softmax(logits, 0);
    const int64_t count = std::min<int64_t>(options_.top, logits.size(0));
    const auto [values, indices] = probabilities.topk(count);
    Json top = Json::array();
    for (int64_t i = 0; i < count; ++i) {
      const auto index = indices[i].item<int64_t>();
      top.push_back({{"class", index}, {"probability", values[i].item<double>()}});
      if (!model_.header.classes.empty()) {
        top.back()["label"] = model_.header.classes[static_cast<size_t>(index)];
      }
    }
    const double* data = logits.data_ptr<double>();
    return {{"input", name}, {"top", top}, {"logits", std::vector(data, data + logits.numel())}};
  }

  models::Model model_;
  PredictOptions options_;
  torch::Device device_;
  torch::ScalarType dtype_;
  torch::ScalarType stored_ = torch::kFloat32;
  nn::Constants constants_;
};

void print_labels(const Json& predictions) {
  const bool has_labels = !predictions.empty() && predictions[0]["top"][0].contains("label");
  std::vector<std::string> headings = {"input", ">rank", ">class", ">probability"};
  if (has_labels) headings.emplace_back("label");
  Table table(headings);
  for (const Json& prediction : predictions) {
    int rank = 0;
    for (const Json& guess : prediction["top"]) {
      std::vector<std::string> cells = {
          rank == 0 ? one_line(prediction["input"]) : "", std::to_string(rank + 1),
          std::to_string(guess["class"].get<int64_t>()),
          fmt::format("{:.2f} %", 100 * guess["probability"].get<double>())};
      if (has_labels) cells.push_back(one_line(guess["label"]));
      table.add(std::move(cells));
      ++rank;
    }
  }
  std::cout << table.text();
}

void print_logits(const Json& predictions) {
  for (const Json& prediction : predictions) {
    std::cout << one_line(prediction["input"]);
    for (const Json& logit : prediction["logits"]) {
      std::cout << fmt::format(" {:.6g}", logit.get<double>());
    }
    std::cout << '\n';
  }
}

}  // namespace

int run_predict(Args args) {
  CLI::App app("What a model says of images: the most likely classes, or all logits.", "predict");
  std::string file;
  std::vector<std::string> inputs;
  ModelOptions model_options;
  PredictOptions options;
  bool is_json = false, has_logits = false;
  app.add_option("FILE", file, "a model file, .pth or Hub folder")->required();
  app.add_option("INPUT", inputs,
                 "JPEG or PNG images, or .safetensors with `input` (B, C, H, W), preprocessed")
      ->required();
  app.add_option("--top", options.top, "how many classes to name")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--logits", has_logits, "print the logits of every class instead");
  app.add_option("--batch-size", options.batch_size, "images at a time")
      ->check(whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--dtype", options.dtype, "float32, float64 or bf16")->capture_default_str();
  add_model_options(app, model_options, /*has_head_reset=*/false);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;

  models::Model model = models::load(file, {model_options.open(), false});
  print_notes(model.notes);
  const Json predictions = Predictor(std::move(model), options).predictions(inputs);
  if (is_json) {
    print_json({{"predictions", predictions}});
  } else if (has_logits) {
    print_logits(predictions);
  } else {
    print_labels(predictions);
  }
  return 0;
}

}  // namespace adjoin::cli
