#include "adjoin/report/search_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace adjoin::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBlocksShown = 64;

void add_point(SearchView& view, const std::string& name, int64_t epoch, const Json& from) {
  auto place = std::find_if(view.networks.begin(), view.networks.end(),
                            [&](const NetworkView& network) { return network.name == name; });
  if (place == view.networks.end()) {
    view.networks.push_back({name, {}});
    place = view.networks.end() - 1;
  }
  place->points.push_back(
      {epoch, from.at("eval_top1").get<double>(), from.at("eval_loss").get<double>()});
}

/// One epoch of the mixture. All of it is read before anything is kept.
void take_epoch(SearchView& view, const Json& line) {
  const auto epoch = line.at("epoch").get<int64_t>();
  const Json& search = line.at("search");
  const auto rows = search.at("probabilities").get<std::vector<std::vector<double>>>();
  const auto alphas = search.at("candidates").get<std::vector<std::vector<int64_t>>>();
  const auto expected = search.at("expected_macs").get<double>();
  if (rows.size() != alphas.size() || rows.size() > kMostBlocksShown) return;
  if (view.blocks.empty()) {
    for (const auto& block : alphas) view.blocks.push_back({block, {}});
  }
  add_point(view, "large", epoch, line);
  for (const Json& small : line.at("small")) {
    add_point(view, small.at("name").get<std::string>(), epoch, small);
  }
  for (NetworkView& network : view.networks) {
    const auto costs = search.at("networks").find(network.name);
    if (costs == search.at("networks").end()) continue;
    network.macs = costs->at("macs").get<int64_t>();
    network.params = costs->at("params").get<int64_t>();
  }
  view.expected_macs.emplace_back(epoch, expected);
  for (size_t i = 0; i < std::min(rows.size(), view.blocks.size()); ++i) {
    if (rows[i].size() == view.blocks[i].alphas.size()) {
      view.blocks[i].probabilities.push_back(rows[i]);
    }
  }
}

void read_mixture(SearchView& view, const std::string& folder, std::vector<std::string>& problems) {
  std::ifstream log(folder + "/log.jsonl");
  int64_t damaged = 0;
  for (std::string line; std::getline(log, line);) {
    try {
      const Json json = Json::parse(line);
      if (json.at("kind") == "epoch") take_epoch(view, json);
    } catch (const std::exception&) {
      ++damaged;
    }
  }
  if (damaged > 0) {
    problems.push_back(fmt::format("{} line{} of search/log.jsonl cannot be read.", damaged,
                                   damaged == 1 ? "" : "s"));
  }
  if (view.networks.empty()) problems.emplace_back("No epoch of the search is finished yet.");
}

void read_trials(SearchView& view, const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().filename().string().starts_with("trial-")) {
      folders.push_back(entry.path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  for (const std::string& trial : folders) {
    const RunView run = read_run(trial);
    if (run.networks.size() < 2) continue;  // it was not finished
    view.trials.push_back(run.networks[1]);
    view.trials.back().name = trial.substr(trial.rfind('/') + 1);
  }
}

}  // namespace

std::optional<SearchView> read_search(const std::string& run, std::vector<std::string>& problems) {
  const std::string folder = run + "/search";
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) return std::nullopt;
  SearchView view;
  if (fs::exists(folder + "/log.jsonl", failure)) read_mixture(view, folder, problems);
  read_trials(view, folder);
  return view;
}

}  // namespace adjoin::report
