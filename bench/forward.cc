// The C++ side of forward.py: loads a golden-filled model and times single repetitions on request,
// so that both sides can be measured turn by turn. One JSON object per line in and out.
#include "adjoin/models/forward.h"

#include <chrono>
#include <optional>

#include "adjoin/core/error.h"
#include "adjoin/models/golden.h"
#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/tensor/device.h"
#include "bench/worker.h"

namespace adjoin {
namespace {

class Worker {
 public:
  Json load(const Json& request) {
    prepare_torch(request.at("threads").get<int>());
    spec_ = catalog_spec(request.at("model").get<std::string>());
    const auto batch = request.at("batch").get<int64_t>();
    weights_ = models::golden_weights(spec_).to(torch::kCPU, torch::kFloat32);
    models::require_gradients(spec_, weights_);
    images_ =
        models::golden_uniform("input", {batch, spec_.in_chans, spec_.img_size, spec_.img_size})
            .to(torch::kFloat32);
    labels_ = torch::arange(batch).remainder(spec_.num_classes);
    context_.constants = &constants_;
    const auto logits = forward().narrow(1, 0, 8).to(torch::kFloat64).contiguous();
    Json rows = Json::array();
    for (int64_t i = 0; i < batch; ++i) {
      const double* row = logits[i].data_ptr<double>();
      rows.push_back(std::vector<double>(row, row + logits.size(1)));
    }
    return {{"logits", rows}, {"torch", TORCH_VERSION}, {"threads", at::get_num_threads()}};
  }

  Json run(const std::string& mode) {
    for (const auto& [name, tensor] : weights_) tensor.mutable_grad().reset();
    const auto start = std::chrono::steady_clock::now();
    if (mode == "train") {
      train_step();
    } else {
      forward();
    }
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return {{"ms", elapsed.count()}};
  }

 private:
  torch::Tensor forward() {
    const torch::NoGradGuard no_grad;
    context_.is_training = false;
    return models::forward(spec_, weights_, images_, context_).logits();
  }

  void train_step() {
    context_.is_training = true;
    const auto logits = models::forward(spec_, weights_, images_, context_).logits();
    torch::nn::functional::cross_entropy(logits, labels_).backward();
  }

  ModelSpec spec_;
  Weights weights_;
  nn::Constants constants_;
  nn::Context context_;
  torch::Tensor images_, labels_;
};

}  // namespace
}  // namespace adjoin

int main() {
  adjoin::Worker worker;
  return adjoin::bench::serve([&](const std::string& op, const adjoin::Json& request) {
    return op == "load" ? worker.load(request) : worker.run(request.at("mode").get<std::string>());
  });
}
