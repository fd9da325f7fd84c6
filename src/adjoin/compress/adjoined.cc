#include "adjoin/compress/adjoined.h"

#include <algorithm>

namespace adjoin::compress {
namespace {

/// Means over the images of KL(a || b), from logarithms of probabilities.
torch::Tensor kl(const torch::Tensor& log_a, const torch::Tensor& log_b) {
  return (log_a.exp() * (log_a - log_b)).sum(-1).mean();
}

/// Makes the large network's tokens once for all that begin as it does.
void share_tokens(std::vector<train::Branch>& networks, const torch::Tensor& images) {
  const auto shares = [](const train::Branch& network) { return network.shares_embedding; };
  if (std::none_of(networks.begin(), networks.end(), shares)) return;
  const train::Branch& large = networks[0];
  const auto tokens = models::embed(large.spec, large.weights, images, large.context);
  networks[0].tokens = tokens;
  for (train::Branch& network : networks) {
    if (network.shares_embedding) network.tokens = tokens;
  }
}

}  // namespace

torch::Tensor lambda_at(const AdjoinedOptions& options, const torch::Tensor& time, int64_t epochs) {
  const auto rising = [&]() -> torch::Tensor {
    switch (options.lambda) {
      case LambdaKind::kQuadratic: return time.square() * 4;
      case LambdaKind::kLagged:
        return (time - 1.0 / static_cast<double>(epochs)).clamp_min(0).square() * 4;
      case LambdaKind::kLinear: return time * 2;
      case LambdaKind::kConstant: break;
    }
    return torch::ones_like(time);
  };
  return rising().clamp_max(1) * options.lambda_max;
}

bool is_lambda_full(const AdjoinedOptions& options, double time, int64_t epochs) {
  return lambda_at(options, torch::tensor(time, torch::kFloat64), epochs).item<double>() ==
         options.lambda_max;
}

torch::Tensor answer_distance(const AdjoinedOptions& options, const torch::Tensor& large,
                              const torch::Tensor& small) {
  const double tau = options.kl_tau;
  const auto teacher = options.detach_teacher ? large.detach() : large;
  const auto log_p = torch::log_softmax(train::wide(teacher) / tau, -1);
  const auto log_q = torch::log_softmax(train::wide(small) / tau, -1);
  const auto forward = kl(log_p, log_q);
  const auto distance =
      options.kl == KlKind::kSymmetric ? (forward + kl(log_q, log_p)) / 2 : forward;
  return distance * (tau * tau);
}

AdjoinedObjective::AdjoinedObjective(const AdjoinedOptions& options,
                                     std::unique_ptr<train::Objective> large,
                                     std::vector<std::string> names, int64_t epochs)
    : options_(options), large_(std::move(large)), names_(std::move(names)), epochs_(epochs) {}

train::Loss AdjoinedObjective::operator()(const std::vector<train::Branch>& branches,
                                          const data::Batch& batch,
                                          const torch::Tensor& time) const {
  std::vector<train::Branch> networks = branches;
  share_tokens(networks, batch.images);
  train::Loss loss = (*large_)(networks, batch, time);
  const auto lambda = lambda_at(options_, time, epochs_);
  const torch::Tensor p = loss.logits[0];
  loss.terms.push_back(lambda);
  for (size_t i = 1; i < networks.size(); ++i) {
    const auto q = networks[i].answer(batch.images).logits();
    const auto distance = answer_distance(options_, p, q);
    loss.value = loss.value + lambda * distance;
    if (options_.small_ce > 0) {
      loss.value = loss.value + train::soft_cross_entropy(q, batch.targets) * options_.small_ce;
    }
    loss.logits.push_back(q);
    loss.terms.push_back(distance);
  }
  return loss;
}

std::vector<std::string> AdjoinedObjective::terms() const {
  std::vector<std::string> result = large_->terms();
  result.push_back("lambda");
  for (const std::string& name : names_) result.push_back("kl_" + name);
  return result;
}

}  // namespace adjoin::compress
