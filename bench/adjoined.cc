// The C++ side of adjoined.py: training steps of a golden-filled large network alone, and of the
// same with small networks inside it, on a fixed batch, timed on request. One JSON object per line
// in and out.
#include "adjoin/compress/job.h"
#include "adjoin/cost/cost.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "adjoin/tensor/device.h"
#include "bench/training_steps.h"
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

Json described(const std::vector<train::InnerNetwork>& inner, const std::vector<int64_t>& alphas) {
  Json result = Json::array();
  for (const train::InnerNetwork& network : inner) {
    const ModelSpec& spec = network.derived.spec;
    Json heads = Json::array();
    Json hidden = Json::array();
    for_each_block(spec, [&](const BlockSpec& block) {
      heads.push_back(block.heads);
      hidden.push_back(block.hidden);
    });
    result.push_back({{"alpha", alphas[result.size()]},
                      {"macs", cost(spec).macs.total()},
                      {"heads", heads},
                      {"hidden", hidden}});
  }
  return result;
}

class Worker {
 public:
  /// The losses of the first steps, and what the networks cost.
  Json load(const Json& request) {
    prepare_torch(request.at("threads").get<int>());
    large_.reset();
    adjoined_.reset();
    config_.alpha = request.at("alphas").get<std::vector<int64_t>>();
    config_.adjoined.lambda = compress::LambdaKind::kConstant;
    const auto compute = train::choose_compute(request.at("device").get<std::string>(),
                                               request.at("dtype").get<std::string>());
    const ModelSpec spec = spec_called(request.at("model").get<std::string>());
    const auto images = request.at("batch").get<int64_t>();
    train::Networks networks{spec, models::golden_weights(spec)};
    large_ =
        std::make_unique<bench::TrainingSteps>(networks, config_.train, plain_, compute, images);
    networks.inner = compress::inner_networks(config_, spec, networks.start);
    objective_ = std::make_unique<compress::AdjoinedObjective>(
        config_.adjoined, std::make_unique<train::PlainObjective>(),
        std::vector<std::string>(networks.inner.size(), "small"), /*epochs=*/1);
    adjoined_ = std::make_unique<bench::TrainingSteps>(networks, config_.train, *objective_,
                                                       compute, images);
    return {
        {"losses", {{"large", large_->first_losses()}, {"adjoined", adjoined_->first_losses()}}},
        {"large_macs", cost(spec).macs.total()},
        {"small", described(networks.inner, config_.alpha)},
        {"torch", TORCH_VERSION},
        {"threads", at::get_num_threads()}};
  }

  Json run(const std::string& what, int64_t repeats) {
    return (what == "large" ? *large_ : *adjoined_).timed(repeats);
  }

 private:
  compress::CompressConfig config_;
  const train::PlainObjective plain_;
  std::unique_ptr<train::Objective> objective_;
  std::unique_ptr<bench::TrainingSteps> large_;
  std::unique_ptr<bench::TrainingSteps> adjoined_;
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
