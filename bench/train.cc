// The C++ side of train.py: whole training steps (forward, backward, AdamW) of a golden-filled
// model on a fixed batch, timed on request. One JSON object per line in and out.
#include "adjoin/spec/catalog.h"
#include "adjoin/tensor/device.h"
#include "adjoin/train/job.h"
#include "bench/training_steps.h"
#include "bench/worker.h"

namespace adjoin {
namespace {

class Worker {
 public:
  /// The losses of the first steps, which both sides must agree on.
  Json load(const Json& request) {
    prepare_torch(request.at("threads").get<int>());
    steps_.reset();
    const auto compute = train::choose_compute(request.at("device").get<std::string>(),
                                               request.at("dtype").get<std::string>());
    const ModelSpec spec = catalog_spec(request.at("model").get<std::string>());
    steps_ = std::make_unique<bench::TrainingSteps>(
        train::Networks{spec, models::golden_weights(spec)}, config_, objective_, compute,
        request.at("batch").get<int64_t>());
    return {{"losses", steps_->first_losses()},
            {"torch", TORCH_VERSION},
            {"threads", at::get_num_threads()}};
  }

  Json run(int64_t repeats) { return steps_->timed(repeats); }

 private:
  const train::TrainConfig config_;
  const train::PlainObjective objective_;
  std::unique_ptr<bench::TrainingSteps> steps_;
};

}  // namespace
}  // namespace adjoin

int main() {
  adjoin::Worker worker;
  return adjoin::bench::serve([&](const std::string& op, const adjoin::Json& request) {
    return op == "load" ? worker.load(request) : worker.run(request.at("repeats").get<int64_t>());
  });
}
