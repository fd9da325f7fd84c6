// The C++ side of bayes.py: proposals of networks by Gaussian processes, timed, and how good what
// they find is on a reward that can be computed. One JSON object per line in and out.
#include <chrono>

#include "adjoin/search/proposers.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/tensor/device.h"
#include "bench/worker.h"

namespace adjoin {
namespace {

using search::Exploration;
using search::Outcome;

/// Every block matters by its own weight, what is kept costs, and skips help a little.
double reward(const Exploration& space, const Choice& choice) {
  double sum = 0.05 * static_cast<double>(choice.skips.size());
  for (size_t i = 0; i < choice.blocks.size(); ++i) {
    if (!choice.blocks[i].keep) continue;
    const auto share = [](int64_t part, int64_t whole) {
      return static_cast<double>(part) / static_cast<double>(whole);
    };
    const double heads = share(choice.blocks[i].heads, space.whole().blocks[i].heads);
    const double hidden = share(choice.blocks[i].hidden, space.whole().blocks[i].hidden);
    const double weight = 0.3 + 0.9 * static_cast<double>((7 * i + 3) % 5) / 4;
    sum += weight * (std::sqrt(heads) + std::sqrt(hidden)) - 0.6 * (heads + hidden);
  }
  return sum;
}

std::vector<Choice> proposed(const std::string& way, const Exploration& space,
                             const std::vector<Outcome>& tried, int64_t count, uint64_t seed) {
  search::Proposer named = search::Proposer::kRandom;
  from_json(Json(way), named, "way");
  return search::propose(named, space, {tried}, count, seed);
}

/// The best reward after every batch.
Json searched(const Json& request) {
  const Exploration space(catalog_spec(request.at("model").get<std::string>()), {});
  const auto way = request.at("way").get<std::string>();
  const auto seed = request.at("seed").get<uint64_t>();
  const auto trials = request.at("trials").get<int64_t>();
  std::vector<Outcome> tried;
  double best = -INFINITY;
  Json curve = Json::array();
  while (std::ssize(tried) < trials) {
    const auto count =
        std::min<int64_t>(request.at("batch").get<int64_t>(), trials - std::ssize(tried));
    for (const Choice& choice : proposed(way, space, tried, count, seed)) {
      tried.push_back({choice, reward(space, choice)});
      best = std::max(best, tried.back().reward);
    }
    curve.push_back(best);
  }
  return {{"best", best}, {"curve", curve}};
}

/// Networks of at most a share of the large one's MACs.
Exploration space_of(const Json& request) {
  const Exploration whole(catalog_spec(request.at("model").get<std::string>()), {});
  const auto macs = static_cast<double>(whole.price(whole.whole()).macs);
  search::Target limits;
  limits.macs = static_cast<int64_t>(request.at("share").get<double>() * macs);
  return Exploration(whole.large(), limits);
}

/// Seconds for one batch after so many trials.
Json timed(const Json& request) {
  const Exploration space = space_of(request);
  std::vector<Outcome> tried;
  for (const Choice& choice : search::propose(search::Proposer::kRandom, space, {},
                                              request.at("trials").get<int64_t>(), 0)) {
    tried.push_back({choice, reward(space, choice)});
  }
  const auto start = std::chrono::steady_clock::now();
  const auto found = proposed(request.at("way").get<std::string>(), space, tried,
                              request.at("batch").get<int64_t>(), 1);
  const auto time = std::chrono::steady_clock::now() - start;
  return {{"seconds", std::chrono::duration<double>(time).count()}, {"proposals", found.size()}};
}

}  // namespace
}  // namespace adjoin

int main() {
  adjoin::prepare_torch(1);
  return adjoin::bench::serve([](const std::string& op, const adjoin::Json& request) {
    if (op == "load") return adjoin::Json{{"threads", at::get_num_threads()}};
    return op == "search" ? adjoin::searched(request) : adjoin::timed(request);
  });
}
