#include "adjoin/search/embedding.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

namespace adjoin::search {

torch::Tensor block_sequence(const Exploration& space, const Choice& choice) {
  const auto count = static_cast<int64_t>(space.blocks());
  auto rows = torch::zeros({count, 4 + 2 * count}, torch::kFloat64);
  auto cells = rows.accessor<double, 2>();
  for (int64_t i = 0; i < count; ++i) {
    const BlockChoice& block = choice.blocks[static_cast<size_t>(i)];
    const BlockChoice& whole = space.whole().blocks[static_cast<size_t>(i)];
    cells[i][3] = static_cast<double>(i) / static_cast<double>(count);
    if (!block.keep) continue;
    cells[i][0] = 1;
    cells[i][1] = static_cast<double>(block.heads) / static_cast<double>(whole.heads);
    cells[i][2] = static_cast<double>(block.hidden) / static_cast<double>(whole.hidden);
  }
  for (const Skip& skip : choice.skips) {
    cells[skip.to][4 + skip.from] = 1;
    cells[skip.from][4 + count + skip.to] = 1;
  }
  return rows;
}

torch::Tensor block_sequences(const Exploration& space, const std::vector<Choice>& choices) {
  std::vector<torch::Tensor> all;
  for (const Choice& choice : choices) all.push_back(block_sequence(space, choice));
  return torch::stack(all);
}

torch::Tensor plain_points(const torch::Tensor& sequences) {
  const auto flat = sequences.flatten(1);
  // Two networks drawn at random differ by about 0.4 in each of three numbers of a block.
  return flat / (4 * std::sqrt(static_cast<double>(sequences.size(1))));
}

struct LearnedEmbedding::Network {
  torch::nn::LSTM lstm{nullptr};
};

LearnedEmbedding::LearnedEmbedding(int64_t features, const EmbeddingOptions& options, uint64_t seed)
    : options_(options), network_(std::make_unique<Network>()) {
  network_->lstm = torch::nn::LSTM(torch::nn::LSTMOptions(features, options.hidden)
                                       .num_layers(options.layers)
                                       .batch_first(true)
                                       .bidirectional(true));
  network_->lstm->to(torch::kFloat64);
  auto rng = at::detail::createCPUGenerator(seed);
  const torch::NoGradGuard no_grad;
  const double most = 1 / std::sqrt(static_cast<double>(options.hidden));
  for (torch::Tensor& parameter : network_->lstm->parameters()) {
    parameter.uniform_(-most, most, rng);
  }
}

LearnedEmbedding::~LearnedEmbedding() = default;

torch::Tensor LearnedEmbedding::operator()(const torch::Tensor& sequences) const {
  const auto steps = std::get<0>(network_->lstm->forward(sequences));  // (n, blocks, 2 hidden)
  return torch::nn::functional::normalize(steps.mean(1));
}

std::vector<double> LearnedEmbedding::train(const torch::Tensor& sequences,
                                            const torch::Tensor& values_in) {
  constexpr int64_t kLeastSteps = 5;
  constexpr double kStill = 1e-3;
  const auto values = standardised(values_in).values;
  torch::optim::Adam optimizer(
      network_->lstm->parameters(),
      torch::optim::AdamOptions(options_.lr).weight_decay(options_.weight_decay));
  std::vector<double> likelihoods;
  double average = 0;
  for (int64_t step = 0; step < options_.most_steps; ++step) {
    optimizer.zero_grad();
    const auto likelihood = leave_one_out((*this)(sequences), values, options_.process);
    (-likelihood).backward();
    optimizer.step();
    likelihoods.push_back(likelihood.item<double>());
    average = step == 0 ? likelihoods.back() : 0.5 * average + 0.5 * likelihoods.back();
    const bool is_still = std::abs(average - likelihoods.back()) < kStill;
    if (step + 1 >= kLeastSteps && is_still) break;
  }
  return likelihoods;
}

}  // namespace adjoin::search
