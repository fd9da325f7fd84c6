#include "adjoin/report/search_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"
#include "adjoin/core/table.h"
#include "adjoin/io/model_file.h"
#include "adjoin/spec/architecture.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "adjoin/spec/named.h"
#include "adjoin/spec/overrides.h"

namespace adjoin::report {
namespace {

namespace fs = std::filesystem;

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
void take_epoch(SearchView& kept, const Json& line) {
  SearchView view = kept;
  const auto epoch = line.at("epoch").get<int64_t>();
  const Json& search = line.at("search");
  const auto rows = search.at("probabilities").get<std::vector<std::vector<double>>>();
  const auto alphas = search.at("candidates").get<std::vector<std::vector<int64_t>>>();
  if (view.blocks.empty()) {
    for (const auto& block : alphas) view.blocks.push_back({block, {}});
  }
  if (rows.size() != view.blocks.size()) throw Error(ErrorKind::kData, "another number of blocks");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty() || rows[i].size() != view.blocks[i].alphas.size()) {
      throw Error(ErrorKind::kData, "another number of candidates");
    }
    view.blocks[i].probabilities.push_back(rows[i]);
  }
  view.expected_macs.emplace_back(epoch, search.at("expected_macs").get<double>());
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
  kept = std::move(view);
}

void read_mixture(SearchView& view, const std::string& folder, std::vector<std::string>& problems) {
  std::ifstream log(folder + "/log.jsonl");
  int64_t damaged = 0;
  int64_t number = 0;
  InspectionLog inspections;
  for (std::string line; std::getline(log, line);) {
    ++number;
    try {
      const Json json = Json::parse(line);
      if (json.at("kind") != "epoch") continue;
      take_epoch(view, json);
      inspections.take(json, number);
    } catch (const std::exception&) {
      ++damaged;
    }
  }
  if (damaged > 0) {
    problems.push_back(so_many(damaged, "line") + " of search/log.jsonl cannot be read.");
  }
  if (const auto problem = inspections.problem("search/log.jsonl")) problems.push_back(*problem);
  view.inspections = std::move(inspections).all();
  if (view.networks.empty()) problems.emplace_back("No epoch of the search is finished yet.");
}

/// The number of "trial-012"; nothing for another name.
std::optional<int64_t> trial_number(const std::string& name) {
  constexpr std::string_view kPrefix = "trial-";
  int64_t number = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(name.data() + kPrefix.size(), end, number);
  return failure == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

void read_trials(SearchView& view, const std::string& folder, std::vector<std::string>& problems) {
  std::map<int64_t, std::string> trials;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    const auto number = trial_number(name);
    if (number && entry.is_directory(failure) && !entry.is_symlink(failure)) {
      trials[*number] = name;
    }
  }
  for (const auto& [number, name] : trials) {
    const RunView run = read_run(fmt::format("{}/{}", folder, name));
    if (run.networks.size() < 2) {
      problems.push_back(fmt::format("{} is not finished.", name));
      continue;
    }
    view.trials.push_back(run.networks[1]);
    view.trials.back().name = name;
  }
}

/// The network that was found, as a part of the large one; not where it is drawn as one that was
/// trained.
void read_architecture(SearchView& view, const RunView& run, std::vector<std::string>& problems) {
  const std::string path = run.folder + "/architecture.json";
  const std::string name = run.setting("model");
  std::error_code failure;
  if (!fs::exists(path, failure)) return;
  try {
    std::vector<Override> changes;
    for (const Json& text : run.config.at("set")) {
      changes.push_back(parse_override(text.get<std::string>()));
    }
    const bool is_trained = !run.networks.empty() && run.networks[0].spec;
    if (!is_trained && (name.empty() || is_spec_file(name))) return;
    const ModelSpec large =
        is_trained ? *run.networks[0].spec : with_overrides(catalog_spec(name), changes);
    const Choice choice = architecture_from_json(large, read_json_file(path), path);
    const bool is_drawn = run.networks.size() > 1 && run.networks[1].spec;
    if (!is_drawn) view.found = {large, derive(large, choice, Geometry::kKept).spec};
  } catch (const std::exception& e) {
    problems.push_back(fmt::format("What was found cannot be drawn: {}.", e.what()));
  }
}

/// The large network of a search by trials on disk: its teacher's, or as the config names it.
std::optional<ModelSpec> teacher_network(const RunView& run) {
  for (const std::string& file : {run.folder + "/teacher/model.safetensors", run.setting("from")}) {
    std::error_code failure;
    if (file.empty() || !fs::exists(file, failure)) continue;
    try {
      return io::open_model(file).header.spec;
    } catch (const Error&) {
      continue;  // a file of another kind, or a damaged one: the name is left
    }
  }
  const std::string name = run.setting("model");
  if (name.empty() || is_spec_file(name)) return std::nullopt;
  std::vector<Override> changes;
  for (const Json& text : run.config.at("set")) {
    changes.push_back(parse_override(text.get<std::string>()));
  }
  return with_overrides(catalog_spec(name), changes);
}

void read_study(SearchView& view, const RunView& run, std::vector<std::string>& problems) {
  try {
    const store::Study study = store::Study::read(run.folder + "/study.db");
    const StudyFacts facts{study.fact("teacher"), study.fact("best"), study.fact("target"),
                           study.fact("best_of"), study.fact("final:")};
    view.study = study_view(study.trials(), facts, teacher_network(run), problems);
  } catch (const std::exception& e) {
    problems.push_back(fmt::format("The study cannot be read: {}.", e.what()));
  }
}

}  // namespace

std::optional<SearchView> read_search(const RunView& run, std::vector<std::string>& problems) {
  if (run.verb != "search") return std::nullopt;
  const std::string folder = run.folder + "/search";
  std::error_code failure;
  SearchView view;
  if (fs::exists(run.folder + "/study.db", failure)) {
    read_study(view, run, problems);
    return view;
  }
  if (place_at(folder + "/log.jsonl") == Place::kFile) read_mixture(view, folder, problems);
  read_trials(view, folder, problems);
  read_architecture(view, run, problems);
  return view;
}

}  // namespace adjoin::report
