#include "adjoin/search/embedding.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

namespace adjoin::search {
namespace {

/// What each embedding learns from; parts of different sizes are filled up.
struct Lessons {
  torch::Tensor sequences;  ///< (embeddings, n, blocks, features)
  torch::Tensor values;     ///< (embeddings, n)
  torch::Tensor is_there;   ///< the same: one, or zero for what fills up
};

Lessons lessons_of(const torch::Tensor& sequences, const torch::Tensor& values,
                   const std::vector<std::vector<int64_t>>& parts) {
  size_t most = 0;
  for (const auto& part : parts) most = std::max(most, part.size());
  const auto filled = [&](const torch::Tensor& list) {
    const auto missing = static_cast<int64_t>(most) - list.size(0);
    return torch::cat({list, torch::zeros({missing}, list.options())});
  };
  std::vector<torch::Tensor> rows;
  std::vector<torch::Tensor> known;
  std::vector<torch::Tensor> is_there;
  for (const auto& part : parts) {
    const auto mine = torch::tensor(part, torch::kInt64);
    rows.push_back(sequences.index_select(0, filled(mine)));
    known.push_back(filled(standardised(values.index_select(0, mine)).values));
    is_there.push_back(filled(torch::ones({mine.size(0)}, torch::kFloat64)));
  }
  return {torch::stack(rows), torch::stack(known), torch::stack(is_there)};
}

/// (embeddings, networks, blocks, features) -> (embeddings, networks, 2 hidden), float64
torch::Tensor embedded(const std::vector<LstmLayer>& layers, const torch::Tensor& sequences) {
  auto x = sequences.to(torch::kFloat32);
  for (const LstmLayer& layer : layers) x = bidirectional(layer, x);
  const auto mean = x.mean(2).to(torch::kFloat64);
  return torch::nn::functional::normalize(mean,
                                          torch::nn::functional::NormalizeFuncOptions().dim(-1));
}

}  // namespace

torch::Tensor block_sequence(const Exploration& space, const Choice& choice) {
  const auto count = static_cast<int64_t>(space.blocks());
  constexpr int64_t kFirst = 5;  // of the columns of skips
  auto rows = torch::zeros({count, kFirst + 2 * count}, torch::kFloat64);
  auto cells = rows.accessor<double, 2>();
  for (int64_t i = 0; i < count; ++i) {
    const BlockChoice& block = choice.blocks[static_cast<size_t>(i)];
    const BlockChoice& whole = space.whole().blocks[static_cast<size_t>(i)];
    cells[i][3] = static_cast<double>(i) / static_cast<double>(count);
    if (!block.keep) continue;
    cells[i][0] = 1;
    cells[i][4] = block.norm == whole.norm ? 0 : 0.25 * (1 + static_cast<double>(block.norm));
    cells[i][1] = static_cast<double>(block.heads) / static_cast<double>(whole.heads);
    cells[i][2] = static_cast<double>(block.hidden) / static_cast<double>(whole.hidden);
  }
  for (const Skip& skip : choice.skips) {
    const double weight = skip.kind == SkipKind::kIdentity ? 1 : 0.5;
    cells[skip.to][kFirst + skip.from] = weight;
    cells[skip.from][kFirst + count + skip.to] = weight;
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

LearnedEmbeddings::LearnedEmbeddings(int64_t features, const EmbeddingOptions& options,
                                     const std::vector<uint64_t>& seeds)
    : options_(options) {
  const double most = 1 / std::sqrt(static_cast<double>(options.hidden));
  std::vector<at::Generator> streams;
  for (const uint64_t seed : seeds) streams.push_back(at::detail::createCPUGenerator(seed));
  const auto drawn = [&](int64_t rows) {
    std::vector<torch::Tensor> all;
    for (at::Generator& stream : streams) {
      all.push_back(torch::empty({2, rows, 4 * options.hidden}).uniform_(-most, most, stream));
    }
    return torch::cat(all).requires_grad_();
  };
  for (int64_t i = 0; i < options.layers; ++i) {
    const int64_t inputs = i == 0 ? features : 2 * options.hidden;
    layers_.push_back({drawn(inputs), drawn(options.hidden), drawn(1)});
  }
}

torch::Tensor LearnedEmbeddings::points(size_t which, const torch::Tensor& sequences) const {
  std::vector<LstmLayer> layers;
  for (const LstmLayer& layer : layers_) {
    layers.push_back(layer.only(static_cast<int64_t>(which)));
  }
  return embedded(layers, sequences.unsqueeze(0)).squeeze(0);
}

std::vector<double> LearnedEmbeddings::train(const torch::Tensor& sequences,
                                             const torch::Tensor& values,
                                             const std::vector<std::vector<int64_t>>& parts,
                                             const std::function<void()>& between) {
  constexpr int64_t kLeastSteps = 5;
  constexpr double kStill = 1e-3;
  const Lessons lessons = lessons_of(sequences, values, parts);
  std::vector<torch::Tensor> parameters;
  for (const LstmLayer& layer : layers_) {
    parameters.insert(parameters.end(), {layer.input, layer.recurrent, layer.bias});
  }
  torch::optim::Adam optimizer(
      parameters, torch::optim::AdamOptions(options_.lr).weight_decay(options_.weight_decay));
  std::vector<double> likelihoods;
  double average = 0;
  for (int64_t step = 0; step < options_.most_steps; ++step) {
    between();
    optimizer.zero_grad();
    const auto likelihood = leave_one_out(embedded(layers_, lessons.sequences), lessons.values,
                                          options_.process, lessons.is_there);
    (-likelihood.sum()).backward();  // each embedding has its own parameters
    optimizer.step();
    likelihoods.push_back(likelihood.mean().item<double>());
    average = step == 0 ? likelihoods.back() : 0.5 * average + 0.5 * likelihoods.back();
    const bool is_still = std::abs(average - likelihoods.back()) < kStill;
    if (step + 1 >= kLeastSteps && is_still) break;
  }
  return likelihoods;
}

}  // namespace adjoin::search
