#include "adjoin/search/dan.h"

#include "adjoin/core/rng.h"

namespace adjoin::search {
namespace {

constexpr char kNetwork[] = "search";
constexpr char kEta[] = "mixing";
constexpr char kMultipliers[] = "multipliers";
constexpr char kNoise[] = "noise";
constexpr uint64_t kNoiseStream = 0x6e6f697365;

/// A number of each price, (blocks, candidates), float64; 0 where there is no candidate.
template <class Number>
torch::Tensor priced_table(const Space& space, const Mixture& mixture, Number number) {
  auto table = torch::zeros({mixture.blocks(), mixture.candidates()}, torch::kFloat64);
  auto values = table.accessor<double, 2>();
  for (size_t i = 0; i < space.blocks(); ++i) {
    for (size_t j = 0; j < space.alphas()[i].size(); ++j) {
      values[static_cast<int64_t>(i)][static_cast<int64_t>(j)] =
          static_cast<double>(number(space.price(i, j)));
    }
  }
  return table.to(mixture.is_legal().device());
}

/// softmax over the legal candidates.
torch::Tensor probabilities_of(const torch::Tensor& logits, const torch::Tensor& is_legal) {
  return softened(logits, torch::zeros_like(logits), torch::ones({}, logits.options()), is_legal);
}

torch::Tensor drawn(const Mixture& mixture, uint64_t seed) {
  Rng rng(stream_key(seed, {kNoiseStream}));
  auto uniform = torch::empty({mixture.blocks(), mixture.candidates()}, torch::kFloat64);
  auto* values = uniform.data_ptr<double>();
  for (int64_t i = 0; i < uniform.numel(); ++i) values[i] = rng.uniform();
  return gumbel(uniform);
}

}  // namespace

Budget::Budget(const Space& space, const Target& target, const Mixture& mixture)
    : is_legal_(mixture.is_legal()) {
  std::vector<torch::Tensor> shares;
  std::vector<double> rest;
  const auto add = [&](const std::optional<int64_t>& limit, auto number) {
    if (!limit) return;
    const auto whole = static_cast<double>(*limit);
    shares.push_back(priced_table(space, mixture, number) / whole);
    rest.push_back(static_cast<double>(number(space.rest())) / whole);
  };
  add(target.macs, [](const Price& price) { return price.macs; });
  add(target.params, [](const Price& price) { return price.params; });
  shares_ = shares.empty() ? torch::zeros({0, mixture.blocks(), mixture.candidates()},
                                          is_legal_.options().dtype(torch::kFloat64))
                           : torch::stack(shares);
  rest_ = torch::tensor(rest, torch::kFloat64).to(is_legal_.device());
}

torch::Tensor Budget::priced(const torch::Tensor& eta, const torch::Tensor& multipliers) const {
  if (targets() == 0) return eta;
  const auto shares = shares_.to(eta.options());
  return eta - (multipliers.view({-1, 1, 1}) * shares).sum(0);
}

torch::Tensor Budget::spent(const torch::Tensor& probabilities) const {
  const auto shares = shares_.to(probabilities.options());
  return rest_.to(probabilities.options()) + (shares * probabilities).sum({1, 2});
}

void Budget::adapt(const torch::Tensor& eta, torch::Tensor multipliers) const {
  if (targets() == 0) return;
  const torch::NoGradGuard no_grad;
  const auto shares = shares_.to(eta.options());
  const auto p = probabilities_of(priced(eta, multipliers), is_legal_);
  const auto excess = spent(p) - 1;  // (targets)
  // Of d spent / d nu = - sum over the blocks of the variance of a candidate's price.
  const auto mean = (shares * p).sum(2, /*keepdim=*/true);
  const auto variance = ((shares - mean).square() * p).sum({1, 2});
  const auto widest = (shares.amax({1, 2}) - shares.amin({1, 2})).clamp_min(1e-12);
  // No candidate gains or loses more than this in a step, however flat the mixture is by now.
  const auto most = 0.5 / widest;
  const auto wanted = excess / (variance + 1e-12) / static_cast<double>(targets());
  const auto moved = multipliers + torch::minimum(torch::maximum(wanted, -most), most);
  // What binds is met from both sides; what does not may be undercut.
  multipliers.copy_(torch::where(excess == excess.max(), moved, moved.clamp_min(0)));
}

Dan::Dan(const Space& searched, Space wanted, const Target& target, const DanOptions& options,
         int64_t seed, torch::Device device)
    : wanted_(std::move(wanted)),
      target_(target),
      options_(options),
      mixture_(searched, device),
      budget_(wanted_, target_, mixture_),
      seed_(static_cast<uint64_t>(seed)) {}

train::InnerNetwork Dan::network() const {
  train::InnerNetwork result{kNetwork, mixture_.widest(), {}, options_.eta_lr_scale};
  const auto add = [&](const std::string& name, const torch::Tensor& start, bool is_trained) {
    TensorInfo info{name, {}, {InitKind::kZeros}, /*has_decay=*/false, is_trained};
    for (const int64_t size : start.sizes()) info.axes.push_back(whole(size));
    result.derived.sources.push_back({info, std::nullopt});
    result.own.set(name, start);
  };
  add(kEta, torch::zeros({mixture_.blocks(), mixture_.candidates()}), true);
  add(kMultipliers, torch::zeros({budget_.targets()}), false);
  if (options_.noise == NoiseKind::kGumbelFrozen) {
    add(kNoise, drawn(mixture_, seed_).to(torch::kFloat32), false);
  }
  return result;
}

Learned Dan::learned(const Weights& network) const {
  const torch::NoGradGuard no_grad;
  const auto wide = [](const torch::Tensor& t) {
    return t.defined() ? t.detach().to(torch::kFloat64) : t;
  };
  const auto multipliers = wide(network.at(kMultipliers));
  const auto frozen = wide(network.find(kNoise));
  const auto eta = wide(network.at(kEta));
  const auto logits = budget_.priced(frozen.defined() ? eta + frozen : eta, multipliers);
  Learned result;
  result.probabilities = probabilities_of(logits, mixture_.is_legal()).cpu();
  Scores scores;
  std::vector<double> importance;  // the share of a block that the mixture keeps
  const auto p = result.probabilities.accessor<double, 2>();
  const auto log_p = result.probabilities.clamp_min(1e-300).log();
  const auto score = log_p.accessor<double, 2>();
  for (size_t i = 0; i < wanted_.blocks(); ++i) {
    scores.emplace_back();
    importance.push_back(0);
    for (size_t j = 0; j < wanted_.alphas()[i].size(); ++j) {
      const auto row = static_cast<int64_t>(i);
      const auto column = static_cast<int64_t>(j);
      scores.back().push_back(score[row][column]);
      importance.back() += p[row][column] / static_cast<double>(wanted_.alphas()[i][j]);
    }
  }
  result.fitted = fit(wanted_, scores, importance, target_);
  return result;
}

double Dan::expected_macs(const torch::Tensor& probabilities) const {
  const auto macs =
      priced_table(wanted_, mixture_, [](const Price& price) { return price.macs; }).cpu();
  return (probabilities * macs).sum().item<double>() + static_cast<double>(wanted_.rest().macs);
}

torch::Tensor temperature(const DanOptions& options, const torch::Tensor& time) {
  return options.tau_start * torch::pow(options.tau_end / options.tau_start, time);
}

DanObjective::DanObjective(std::shared_ptr<const Dan> dan, const compress::AdjoinedOptions& options,
                           std::unique_ptr<train::Objective> large, int64_t epochs)
    : dan_(std::move(dan)),
      options_(options),
      adjoined_(options, std::move(large), {kNetwork}, epochs),
      epochs_(epochs),
      macs_(priced_table(dan_->wanted(), dan_->mixture(),
                         [](const Price& price) { return price.macs; })) {}

torch::Tensor DanObjective::noise(const train::Branch& network) const {
  const torch::Tensor& eta = network.weights.at(kEta);
  const auto options = eta.options().requires_grad(false);
  switch (dan_->options().noise) {
    case NoiseKind::kGumbelFrozen: return network.weights.at(kNoise);
    case NoiseKind::kGaussian: return torch::randn(eta.sizes(), network.context.rng, options);
    case NoiseKind::kGumbel: break;
  }
  return gumbel(torch::rand(eta.sizes(), network.context.rng, options));
}

train::Loss DanObjective::operator()(const std::vector<train::Branch>& branches,
                                     const data::Batch& batch, const torch::Tensor& time) const {
  const train::Branch& widest = branches[1];
  const torch::Tensor& eta = widest.weights.at(kEta);
  const torch::Tensor& multipliers = widest.weights.at(kMultipliers);
  const torch::Tensor& is_legal = dan_->mixture().is_legal();
  // Frozen noise is as good as learned: it decides what is picked.
  const bool is_frozen = dan_->options().noise == NoiseKind::kGumbelFrozen;
  const auto drawn_noise = noise(widest);
  const auto wanted = is_frozen ? eta + drawn_noise : eta;
  dan_->budget().adapt(wanted, multipliers);
  const auto logits = dan_->budget().priced(wanted, multipliers);
  const auto tau = temperature(dan_->options(), time).to(eta.scalar_type());
  const auto shares =
      softened(logits, is_frozen ? torch::zeros_like(eta) : drawn_noise, tau, is_legal);
  const Weights mixed = dan_->mixture().weights(widest.weights, shares);
  train::Loss loss = adjoined_(
      {branches[0], {widest.spec, mixed, widest.context, widest.shares_embedding}}, batch, time);
  const auto macs = macs_.to(eta.options());
  if (!dan_->target().is_stated() && dan_->options().gamma > 0) {
    const auto lambda = compress::lambda_at(options_, time, epochs_);
    loss.value = loss.value + lambda * dan_->options().gamma * (shares * macs).sum();
  }
  loss.terms.push_back(tau);
  loss.terms.push_back((probabilities_of(logits.detach(), is_legal) * macs).sum() +
                       static_cast<double>(dan_->wanted().rest().macs));
  return loss;
}

std::vector<std::string> DanObjective::terms() const {
  std::vector<std::string> result = adjoined_.terms();
  result.insert(result.end(), {"tau", "expected_macs"});
  return result;
}

}  // namespace adjoin::search
