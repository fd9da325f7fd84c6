// The C++ side of adjoined.py: training steps of a golden-filled large network alone, and of the
// same with small networks inside it, on a fixed batch, timed on request. One JSON object per line
// in and out.
#include <chrono>
#include <memory>

#include "adjoin/compress/job.h"
#include "adjoin/core/error.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/golden.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "adjoin/tensor/device.h"
#include "bench/worker.h"

namespace adjoin {
namespace {

ModelSpec spec_called(const std::string& name) {
  if (name != "vit_12x192_32") return catalog_spec(name);
  return with_overrides(catalog_spec("vit_mini_32"), {{"embed_dim", "192"},
                                                      {"depth", "12"},
                                                      {"heads", "12"},
                                                      {"head_dim", "16"},
                                                      {"mlp_ratio", "4"}});
}

class Worker {
 public:
  /// The losses of the first steps, and what the networks cost.
  Json load(const Json& request) {
    prepare_torch(request.at("threads").get<int>());
    large_.reset();
    adjoined_.reset();
    config_ = {};
    config_.train.epochs = 1;
    config_.train.optimizer.lr = kLr;
    config_.alpha = request.at("alphas").get<std::vector<int64_t>>();
    config_.adjoined.lambda = compress::LambdaKind::kConstant;
    const auto compute = train::choose_compute(request.at("device").get<std::string>(),
                                               request.at("dtype").get<std::string>());
    is_cuda_ = compute.device.is_cuda();
    const ModelSpec spec = spec_called(request.at("model").get<std::string>());
    const Weights start = models::golden_weights(spec);
    images_ = request.at("batch").get<int64_t>();
    batch_.images =
        models::golden_uniform("input", {images_, spec.in_chans, spec.img_size, spec.img_size})
            .to(compute.device, compute.weight_type());
    batch_.labels = torch::arange(images_).remainder(spec.num_classes).to(compute.device);
    batch_.targets = torch::one_hot(batch_.labels, spec.num_classes).to(compute.weight_type());
    const auto inner = compress::inner_networks(config_, spec, start);
    std::vector<std::string> names;
    for (const train::InnerNetwork& network : inner) names.push_back(network.name);
    objective_ = std::make_unique<compress::AdjoinedObjective>(
        config_.adjoined, std::make_unique<train::PlainObjective>(), names, 1);
    large_ = std::make_unique<train::Trainer>(train::Networks{spec, start}, config_.train, plain_,
                                              compute, group_);
    adjoined_ = std::make_unique<train::Trainer>(train::Networks{spec, start, inner}, config_.train,
                                                 *objective_, compute, group_);
    return {{"losses", {{"large", first_losses(*large_)}, {"adjoined", first_losses(*adjoined_)}}},
            {"large_macs", cost(spec).macs.total()},
            {"small", described(inner)},
            {"torch", TORCH_VERSION},
            {"threads", at::get_num_threads()}};
  }

  Json run(const std::string& what, int64_t repeats) {
    train::Trainer& trainer = what == "large" ? *large_ : *adjoined_;
    synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < repeats; ++i) step(trainer);
    synchronize();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return {{"ms", elapsed.count() / static_cast<double>(repeats)}};
  }

 private:
  static constexpr double kLr = 1e-4;
  static constexpr int kCheckedSteps = 3;

  Json described(const std::vector<train::InnerNetwork>& inner) const {
    Json result = Json::array();
    for (const train::InnerNetwork& network : inner) {
      const ModelSpec& spec = network.derived.spec;
      Json heads = Json::array();
      Json hidden = Json::array();
      int64_t head_dim = 0;
      for_each_block(spec, [&](const BlockSpec& block) {
        heads.push_back(block.heads);
        hidden.push_back(block.hidden);
        head_dim = block.head_dim;
      });
      const Cost counted = cost(spec);
      result.push_back({{"alpha", config_.alpha[result.size()]},
                        {"macs", counted.macs.total()},
                        {"params", counted.params},
                        {"heads", heads},
                        {"hidden", hidden},
                        {"head_dim", head_dim}});
    }
    return result;
  }

  Json first_losses(train::Trainer& trainer) {
    Json losses = Json::array();
    for (int i = 0; i < kCheckedSteps; ++i) {
      step(trainer);
      losses.push_back(trainer.read().loss);
    }
    return losses;
  }

  void step(train::Trainer& trainer) {
    trainer.step(batch_, {images_, trainer.steps_taken(), kLr});
  }

  void synchronize() const {
    if (is_cuda_) torch::cuda::synchronize();
  }

  compress::CompressConfig config_;
  train::PlainObjective plain_;
  std::unique_ptr<train::Objective> objective_;
  train::Group group_;
  data::Batch batch_;
  bool is_cuda_ = false;
  int64_t images_ = 0;
  std::unique_ptr<train::Trainer> large_;
  std::unique_ptr<train::Trainer> adjoined_;
};

}  // namespace
}  // namespace adjoin

int main() {
  adjoin::Worker worker;
  return adjoin::bench::serve([&](const std::string& op, const adjoin::Json& request) {
    if (op == "load") return worker.load(request);
    return worker.run(request.at("what").get<std::string>(), request.at("repeats").get<int64_t>());
  });
}
