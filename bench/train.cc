// The C++ side of train.py: whole training steps (forward, backward, AdamW) of a golden-filled
// model on a fixed batch, timed on request. One JSON object per line in and out.
#include <chrono>
#include <memory>

#include "adjoin/core/error.h"
#include "adjoin/models/golden.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/tensor/device.h"
#include "adjoin/train/job.h"
#include "bench/worker.h"

namespace adjoin {
namespace {

class Worker {
 public:
  /// The losses of the first steps, which both sides must agree on.
  Json load(const Json& request) {
    prepare_torch(request.at("threads").get<int>());
    trainer_.reset();
    config_ = {};
    config_.optimizer.lr = kLr;
    compute_ = train::choose_compute(request.at("device").get<std::string>(),
                                     request.at("dtype").get<std::string>());
    spec_ = catalog_spec(request.at("model").get<std::string>());
    images_ = request.at("batch").get<int64_t>();
    batch_.images =
        models::golden_uniform("input", {images_, spec_.in_chans, spec_.img_size, spec_.img_size})
            .to(compute_.device, compute_.weight_type());
    batch_.labels = torch::arange(images_).remainder(spec_.num_classes).to(compute_.device);
    batch_.targets = torch::one_hot(batch_.labels, spec_.num_classes).to(compute_.weight_type());
    trainer_ =
        std::make_unique<train::Trainer>(train::Networks{spec_, models::golden_weights(spec_)},
                                         config_, objective_, compute_, group_);
    steps_ = 0;
    Json losses = Json::array();
    for (int i = 0; i < kCheckedSteps; ++i) {
      step();
      losses.push_back(trainer_->read().loss);
    }
    return {{"losses", losses}, {"torch", TORCH_VERSION}, {"threads", at::get_num_threads()}};
  }

  Json run(int64_t repeats) {
    synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < repeats; ++i) step();
    synchronize();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return {{"ms", elapsed.count() / static_cast<double>(repeats)}};
  }

 private:
  static constexpr double kLr = 1e-4;
  static constexpr int kCheckedSteps = 3;

  void step() { trainer_->step(batch_, {images_, steps_++, kLr}); }

  void synchronize() const {
    if (compute_.device.is_cuda()) torch::cuda::synchronize();
  }

  train::TrainConfig config_;
  train::Compute compute_;
  train::PlainObjective objective_;
  train::Group group_;
  ModelSpec spec_;
  data::Batch batch_;
  int64_t images_ = 0;
  int64_t steps_ = 0;
  std::unique_ptr<train::Trainer> trainer_;
};

}  // namespace
}  // namespace adjoin

int main() {
  adjoin::Worker worker;
  return adjoin::bench::serve([&](const std::string& op, const adjoin::Json& request) {
    return op == "load" ? worker.load(request) : worker.run(request.at("repeats").get<int64_t>());
  });
}
