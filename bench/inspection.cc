// The C++ side of inspection.py: a forward and backward pass, and a whole inspection of the same
// images, timed on request. One JSON object per line in and out.
#include <chrono>

#include "adjoin/analysis/inspect.h"
#include "adjoin/models/forward.h"
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
    weights_ = models::golden_weights(spec_).to(torch::kCPU, torch::kFloat32);
    const auto images = request.at("batch").get<int64_t>();
    sample_ = {torch::randn({images, spec_.in_chans, spec_.img_size, spec_.img_size}),
               torch::arange(images) % spec_.num_classes};
    const double gap = std::abs(trained() - inspected());  // of the loss: both see the same
    return {{"gap", gap}, {"torch", TORCH_VERSION}, {"threads", at::get_num_threads()}};
  }

  Json run(const std::string& what) {
    const auto start = std::chrono::steady_clock::now();
    what == "inspect" ? inspected() : trained();
    const auto time = std::chrono::steady_clock::now() - start;
    return {{"ms", std::chrono::duration<double, std::milli>(time).count()}};
  }

 private:
  double trained() {
    Weights leaves;
    for (const auto& [name, tensor] : weights_) leaves.set(name, tensor.detach());
    models::require_gradients(spec_, leaves);
    const auto loss = torch::nn::functional::cross_entropy(
        models::forward(spec_, leaves, sample_.images).logits(), sample_.labels);
    loss.backward();
    return loss.item<double>();
  }

  double inspected() { return analysis::inspect({spec_, weights_}, sample_, {}).loss.value(); }

  ModelSpec spec_;
  Weights weights_;
  analysis::Sample sample_;
};

}  // namespace
}  // namespace adjoin

int main() {
  adjoin::Worker worker;
  return adjoin::bench::serve([&](const std::string& op, const adjoin::Json& request) {
    return op == "load" ? worker.load(request) : worker.run(request.at("what").get<std::string>());
  });
}
