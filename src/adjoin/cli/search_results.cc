#include "adjoin/cli/search_results.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "adjoin/core/table.h"

namespace adjoin::cli {
namespace {

/// ", 99.8 % of the target of 1.2 G macs": how much of each target is used.
std::string used_of_target(const Json& run) {
  std::string text;
  for (const auto& [what, limit] : run.at("target").items()) {
    text += fmt::format(", {:.1f} % of the target of {} {}",
                        100 * run.at(what).get<double>() / limit.get<double>(),
                        short_count(limit.get<double>()), what);
  }
  return text;
}

void print_factors(const Json& run) {
  const auto macs = run.at("macs").get<double>();
  const std::string text =
      fmt::format("{}: alphas {}, {} MACs ({:.3f} of the large network's)",
                  run.at("run").get<std::string>() + "/architecture.json",
                  fmt::join(run.at("alphas").get<std::vector<int64_t>>(), ","), short_count(macs),
                  macs / run.at("large").at("macs").get<double>());
  std::cout << text << used_of_target(run) << '\n';
  for (const Json& trim : run.at("trimmed")) {
    fmt::print("  {}: {} hidden units instead of {}\n", trim.at("block").get<std::string>(),
               trim.at("to").get<int64_t>(), trim.at("from").get<int64_t>());
  }
}

void print_found_by_trials(const Json& run) {
  if (run.contains("joined")) {
    fmt::print("{}: this process ran {}\n", run.at("run").get<std::string>(),
               so_many(run.at("trials").get<int64_t>(), "trial"));
    return;
  }
  int64_t kept = 0;
  for (const Json& block : run.at("architecture").at("blocks")) kept += block.at("keep") ? 1 : 0;
  const Json& states = run.at("states");
  const auto macs = run.at("macs").get<double>();
  const auto open = states.at("open").get<int64_t>();
  fmt::print(
      "{}: {} complete, {} stopped early, {} failed{}; proposals took {:.1f} % of the time\n",
      so_many(run.at("trials").get<int64_t>(), "trial"), states.at("complete").get<int64_t>(),
      states.at("stopped").get<int64_t>(), states.at("failed").get<int64_t>(),
      open > 0 ? fmt::format(", {} waiting", open) : "",
      100 * run.at("proposal_seconds").get<double>() /
          std::max(run.at("search_seconds").get<double>(), 1e-9));
  for (const Json& finalist : run.value("finalists", Json::array())) {
    fmt::print("trial {}, trained in full: {:.2f} % of the images set aside\n",
               finalist.at("trial").get<int64_t>(), finalist.at("top1_set_aside").get<double>());
  }
  const std::string text = fmt::format(
      "{}/architecture.json: trial {}, {} of {} blocks, {}, {} MACs ({:.3f} of the large "
      "network's)",
      run.at("run").get<std::string>(), run.at("best").get<int64_t>(), kept,
      run.at("architecture").at("blocks").size(),
      so_many(std::ssize(run.at("architecture").at("skips")), "skip"), short_count(macs),
      macs / run.at("large").at("macs").get<double>());
  fmt::print("{}{}\n", text, used_of_target(run));
}

}  // namespace

void print_search(const Json& run) {
  const bool has_trials = run.value("method", "") == "bayes" || run.contains("joined");
  has_trials ? print_found_by_trials(run) : print_factors(run);
}

}  // namespace adjoin::cli
