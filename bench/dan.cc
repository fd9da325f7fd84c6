// The C++ side of dan.py: steps of a search with one, two and four candidates per block, in one
// pass and candidate by candidate, and adjoined steps whose small network is the whole large one.
// Timed on request. One JSON object per line in and out.
#include "adjoin/search/dan.h"

#include <map>

#include "adjoin/compress/job.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/tensor/device.h"
#include "bench/training_steps.h"
#include "bench/worker.h"

namespace adjoin {
namespace {

compress::AdjoinedOptions full_lambda() {
  compress::AdjoinedOptions options;
  options.lambda = compress::LambdaKind::kConstant;
  return options;
}

/// The same step with every candidate of every block computed.
class ExplicitObjective : public train::Objective {
 public:
  ExplicitObjective(const search::Space& space, torch::Device device)
      : space_(space), mixture_(space, device) {}

  train::Loss operator()(const std::vector<train::Branch>& networks, const data::Batch& batch,
                         const torch::Tensor& time) const override {
    train::Loss loss = train::PlainObjective()(networks, batch, time);
    const torch::Tensor& eta = networks[1].weights.at("mixing");
    const auto uniform =
        torch::rand(eta.sizes(), networks[1].context.rng, eta.options().requires_grad(false));
    const auto tau = search::temperature({}, time).to(eta.scalar_type());
    const auto shares = search::softened(eta, search::gumbel(uniform), tau, mixture_.is_legal());
    const auto q = search::explicit_mixture(space_, networks[0].weights, batch.images, shares,
                                            networks[1].context);
    loss.value = loss.value + compress::answer_distance({}, loss.logits[0], q);
    loss.logits.push_back(q);
    return loss;
  }

 private:
  search::Space space_;
  search::Mixture mixture_;
};

/// The first few factors that the block with the most heads can have.
std::vector<int64_t> candidates_of(const ModelSpec& spec, int64_t count) {
  int64_t most = 1;
  for_each_block(spec, [&](const BlockSpec& block) { most = std::max(most, block.heads); });
  std::vector<int64_t> result;
  for (int64_t alpha = 1; static_cast<int64_t>(result.size()) < count && alpha <= most; ++alpha) {
    if (most % alpha == 0) result.push_back(alpha);
  }
  return result;
}

class Worker {
 public:
  Json load(const Json& request) {
    prepare_torch(request.at("threads").get<int>());
    steps_.clear();
    objectives_.clear();
    compute_ = train::choose_compute(request.at("device").get<std::string>(),
                                     request.at("dtype").get<std::string>());
    images_ = request.at("batch").get<int64_t>();
    const ModelSpec spec = catalog_spec(request.at("model").get<std::string>());
    networks_ = {spec, models::golden_weights(spec)};

    compress::CompressConfig config;
    config.alpha = {1};
    networks_.inner = compress::inner_networks(config, spec, networks_.start);
    add("adjoined", std::make_unique<compress::AdjoinedObjective>(
                        full_lambda(), std::make_unique<train::PlainObjective>(),
                        std::vector<std::string>{"small"}, /*epochs=*/1));
    Json losses;
    for (const int64_t count : {1, 2, 4}) {
      const search::Space space(spec, candidates_of(spec, count));
      const auto dan = std::make_shared<search::Dan>(space, space, search::Target{},
                                                     search::DanOptions{}, 0, compute_.device);
      networks_.inner = {dan->network()};
      const std::string number = std::to_string(count);
      add("one_pass_" + number,
          std::make_unique<search::DanObjective>(
              dan, full_lambda(), std::make_unique<train::PlainObjective>(), /*epochs=*/1));
      add("explicit_" + number, std::make_unique<ExplicitObjective>(space, compute_.device));
      if (count < 4) continue;
      // With a target the multiplier takes its step, too.
      search::Target target;
      target.macs = (space.least().macs + space.most().macs) / 2;
      const auto aimed = std::make_shared<search::Dan>(space, space, target, search::DanOptions{},
                                                       0, compute_.device);
      networks_.inner = {aimed->network()};
      add("target_4",
          std::make_unique<search::DanObjective>(
              aimed, full_lambda(), std::make_unique<train::PlainObjective>(), /*epochs=*/1));
    }
    for (auto& [name, steps] : steps_) losses[name] = steps->first_losses();
    return {{"losses", losses}, {"torch", TORCH_VERSION}, {"threads", at::get_num_threads()}};
  }

  Json run(const std::string& what, int64_t repeats) { return steps_.at(what)->timed(repeats); }

 private:
  void add(const std::string& name, std::unique_ptr<train::Objective> objective) {
    objectives_.push_back(std::move(objective));
    steps_[name] = std::make_unique<bench::TrainingSteps>(networks_, config_, *objectives_.back(),
                                                          compute_, images_);
  }

  const train::TrainConfig config_;
  train::Compute compute_;
  int64_t images_ = 0;
  train::Networks networks_;
  std::vector<std::unique_ptr<train::Objective>> objectives_;
  std::map<std::string, std::unique_ptr<bench::TrainingSteps>> steps_;
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
