// adjoin rank: architectures scored before training, and what the scores are worth.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/cli/rank_batches.h"
#include "adjoin/cli/score_file.h"
#include "adjoin/core/hash.h"
#include "adjoin/core/progress.h"
#include "adjoin/core/signals.h"
#include "adjoin/core/table.h"
#include "adjoin/core/threads.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/init.h"
#include "adjoin/models/load.h"
#include "adjoin/proxy/ranking.h"
#include "adjoin/proxy/verdict.h"
#include "adjoin/search/sample.h"
#include "adjoin/spec/brief.h"
#include "adjoin/spec/named.h"
#include "adjoin/tensor/device.h"

namespace adjoin::cli {
namespace {

struct RankFlags {
  std::string archs;
  std::string space;
  int64_t sample = 100;
  int64_t seed = 0;
  std::string max_macs;
  std::string max_params;
  std::vector<std::string> proxies = {"grad_norm", "snip"};
  std::string data;
  int64_t batch_size = 16;
  int64_t batches = 1;
  std::vector<int64_t> seeds = {0};
  std::string truth;
  int64_t threads = default_threads();
  std::string output;
  std::string inputs;
  bool is_resumed = false;
  bool is_json = false;
};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kUsage, message); }

/// Limits as a user says them; `large`: of what a share is one.
search::Target limits_of(const RankFlags& flags, const search::Price& large) {
  search::Target limits;
  const auto amount = [](const std::string& text, int64_t whole, const char* flag) {
    if (whole == 0 && text.ends_with('x')) {
      refuse(fmt::format("{}: a share needs a large network; give a number such as 300M", flag));
    }
    return search::parse_amount(text, whole, flag);
  };
  if (!flags.max_macs.empty()) limits.macs = amount(flags.max_macs, large.macs, "--max-macs");
  if (!flags.max_params.empty()) {
    limits.params = amount(flags.max_params, large.params, "--max-params");
  }
  return limits;
}

std::vector<ModelSpec> networks_of(const RankFlags& flags) {
  if (flags.archs.empty() == flags.space.empty()) {
    refuse("say which architectures: one of --archs FILE and --space SPACE");
  }
  if (!flags.archs.empty()) {
    std::vector<ModelSpec> networks = read_architectures(flags.archs);
    const search::Target limits = limits_of(flags, {});
    std::erase_if(networks, [&](const ModelSpec& spec) {
      const Cost counted = cost(spec);
      return limits.share({counted.macs.total(), counted.params}) > 1;
    });
    if (networks.empty()) refuse("no architecture is within --max-macs and --max-params");
    return networks;
  }
  constexpr std::string_view kAlphas = "alphas:";
  const auto seed = static_cast<uint64_t>(flags.seed);
  std::vector<ModelSpec> networks;
  if (flags.space.starts_with(kAlphas)) {
    const search::Space space(named_spec(flags.space.substr(kAlphas.size())), {});
    networks = search::sampled(space, flags.sample, seed, limits_of(flags, space.most()));
  } else {
    networks =
        search::sampled(autoformer_space(flags.space), flags.sample, seed, limits_of(flags, {}));
  }
  if (networks.empty())
    refuse("no architecture of the space is within --max-macs and --max-params");
  if (static_cast<int64_t>(networks.size()) < flags.sample) {
    print_notes({fmt::format("{} architectures were found, fewer than --sample {}", networks.size(),
                             flags.sample)});
  }
  return networks;
}

/// What other software needs to score the same networks: I.safetensors, I.batch.safetensors.
void write_inputs(const std::string& folder, const std::vector<ModelSpec>& networks, uint64_t seed,
                  const proxy::BatchSource& batches) {
  const train::RunFolder place(folder, true);
  for (size_t i = 0; i < networks.size(); ++i) {
    const std::string path = fmt::format("{}/{}", folder, i);
    io::ModelHeader header;
    header.spec = networks[i];
    header.preprocessing = default_preprocessing(networks[i]);
    models::save(path + ".safetensors", header, models::init(networks[i], seed));
    const proxy::Sample sample = batches(networks[i]).front();
    models::save_tensors(path + ".batch.safetensors",
                         {{"images", sample.images.contiguous()}, {"labels", sample.labels}}, {});
  }
}

Json to_json(const proxy::Scored& scored, const proxy::RankOptions& options) {
  Json json = {{"name", scored.name}, {"params", scored.params}, {"macs", scored.macs}};
  for (size_t k = 0; k < options.proxies.size(); ++k) {
    const std::string name(options.proxies[k]->name);
    const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    json[name] = finite(scored.scores[k]);
    json["spread"][name] = finite(scored.spreads[k]);
    json["seconds"][name] = scored.seconds[k];
  }
  return json;
}

/// The scores of a proxy; NaN where a line has no number.
std::vector<double> column(const std::vector<Json>& lines, const std::string& name) {
  std::vector<double> values;
  for (const Json& line : lines) {
    const Json& value = line.at(name);
    values.push_back(value.is_number() ? value.get<double>() : NAN);
  }
  return values;
}

/// Error(kData) where a network was not measured.
void check_truth(const std::string& file, const std::vector<ModelSpec>& networks) {
  const proxy::Truth truth = proxy::read_truth(file);
  for (const ModelSpec& spec : networks) {
    if (truth.rows.contains(spec.name)) continue;
    throw Error(ErrorKind::kData, fmt::format("{}: has no row for {}", file, spec.name));
  }
}

/// {"proxies": {name: {..}}, "scores": [..]}, with a verdict per column of the truth.
Json result_json(const RankFlags& flags, const std::vector<std::string>& names,
                 const std::vector<Json>& lines) {
  Json result = {{"proxies", Json::object()}, {"scores", lines}};
  for (const std::string& name : names) {
    double seconds = 0;
    int64_t bad = 0;
    for (const Json& line : lines) {
      seconds += line.at("seconds").value(name, 0.0);
      if (!line.at(name).is_number()) ++bad;
    }
    result["proxies"][name] = {
        {"seconds_per_arch", seconds / static_cast<double>(std::max<size_t>(lines.size(), 1))},
        {"not_finite", bad}};
  }
  if (flags.truth.empty()) return result;
  const proxy::Truth truth = proxy::read_truth(flags.truth);
  result["truth"] = {{"columns", truth.columns}, {"rows", truth.rows}};
  for (size_t c = 0; c < truth.columns.size(); ++c) {
    std::vector<double> measured;
    for (const Json& line : lines) {
      measured.push_back(truth.rows.at(line.at("name").get<std::string>())[c]);
    }
    std::vector<proxy::Scores> all;
    for (const std::string& name : names) all.push_back({name, column(lines, name)});
    for (const proxy::Verdict& verdict : proxy::verdicts(all, column(lines, "params"), measured)) {
      const Json said = {{"spearman", verdict.spearman},
                         {"kendall", verdict.kendall},
                         {"ci", {verdict.low, verdict.high}},
                         {"partial_given_params", verdict.partial_given_params},
                         {"regret_1", verdict.regret_1},
                         {"regret_5", verdict.regret_5},
                         {"architectures", verdict.architectures}};
      Json& place = result["proxies"][verdict.proxy];
      if (c == 0) place.update(said);
      place["columns"][truth.columns[c]] = said;
    }
  }
  return result;
}

void print_result(const RankFlags& flags, const std::vector<std::string>& names,
                  const Json& result) {
  const auto cell = [](const Json& value, const char* format) {
    const bool is_finite = value.is_number() && std::isfinite(value.get<double>());
    return is_finite ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
  };
  if (flags.truth.empty()) {
    std::vector<std::string> heads = {"architecture", ">params", ">MACs"};
    std::vector<std::string> columns;  // the baselines come first anyway
    std::copy_if(names.begin(), names.end(), std::back_inserter(columns),
                 [](const std::string& name) { return name != "params" && name != "macs"; });
    for (const std::string& name : columns) heads.push_back(">" + name);
    Table table(heads);
    constexpr size_t kMostShown = 20;
    std::vector<Json> lines = result.at("scores");
    std::stable_sort(lines.begin(), lines.end(), [&](const Json& a, const Json& b) {
      const auto value = [&](const Json& line) {
        return line.at(names[0]).is_number() ? line.at(names[0]).get<double>() : -INFINITY;
      };
      return value(a) > value(b);
    });
    for (size_t i = 0; i < std::min(lines.size(), kMostShown); ++i) {
      std::vector<std::string> row = {lines[i].at("name").get<std::string>(),
                                      with_commas(lines[i].at("params").get<int64_t>()),
                                      short_count(lines[i].at("macs").get<double>())};
      for (const std::string& name : columns) row.push_back(cell(lines[i].at(name), "{:.5g}"));
      table.add(row);
    }
    std::cout << table.text();
    if (lines.size() > kMostShown) {
      fmt::print("the {} with the highest {} of {}\n", kMostShown, names[0], lines.size());
    }
  } else {
    Table table({"proxy", ">spearman", ">95 %", ">kendall", ">given params", ">regret of 1",
                 ">of 5", ">s each"});
    for (const std::string& name : names) {
      const Json& said = result.at("proxies").at(name);
      table.add({name, cell(said.at("spearman"), "{:.3f}"),
                 cell(said.at("ci")[0], "{:.3f}") + " to " + cell(said.at("ci")[1], "{:.3f}"),
                 cell(said.at("kendall"), "{:.3f}"),
                 cell(said.at("partial_given_params"), "{:.3f}"),
                 cell(said.at("regret_1"), "{:.2f}"), cell(said.at("regret_5"), "{:.2f}"),
                 cell(said.at("seconds_per_arch"), "{:.3f}")});
    }
    std::cout << table.text();
  }
  for (const std::string& name : names) {
    const auto bad = result.at("proxies").at(name).at("not_finite").get<int64_t>();
    if (bad > 0) print_notes({fmt::format("{}: {} scores are no numbers", name, bad)});
  }
}

}  // namespace

int run_rank(Args args) {
  CLI::App app(
      "Scores architectures before training, from one batch; beside measured accuracies it says "
      "what "
      "the scores are worth.",
      "rank");
  RankFlags flags;
  app.add_option("--archs", flags.archs,
                 "architectures, a JSON object per line; or a .yaml of AutoFormer")
      ->type_name("FILE");
  app.add_option("--space", flags.space,
                 "or drawn from a space: autoformer-tiny, -small, -base, a .yaml of AutoFormer, or "
                 "alphas:MODEL");
  app.add_option("--sample", flags.sample, "so many of the space")
      ->check(whole_number(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "of the draw, and of random batches")
      ->check(whole_number(0, 9'000'000'000'000'000))
      ->capture_default_str();
  app.add_option("--max-macs", flags.max_macs, "leave out what has more: 300M, 0.5x of the model");
  app.add_option("--max-params", flags.max_params, "likewise");
  app.add_option("--proxies", flags.proxies,
                 "after commas, or all; params and macs always come along")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--data", flags.data, "take batches of these images (default: random ones)");
  app.add_option("-b,--batch-size", flags.batch_size, "images in a batch")
      ->check(whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--batches", flags.batches, "score on so many, and average")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  app.add_option("--seeds", flags.seeds, "of start values, several after commas, averaged")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(0, 9'000'000'000'000'000))
      ->capture_default_str();
  app.add_option("--truth", flags.truth, "measured accuracies: CSV of name and columns")
      ->type_name("FILE");
  app.add_option("--threads", flags.threads, "architectures at a time")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  app.add_option("--output", flags.output, "folder of scores.jsonl, a line as each is done")
      ->type_name("DIR");
  app.add_option("--write-inputs", flags.inputs,
                 "also write start values of the first seed and the first batch of every "
                 "architecture")
      ->type_name("DIR");
  app.add_flag("--resume", flags.is_resumed, "go on with the scores in --output");
  app.add_flag("--json", flags.is_json, "print JSON");
  if (!parse(app, args)) return 0;

  proxy::RankOptions options;
  std::vector<std::string> names = flags.proxies;
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const proxy::Proxy& proxy : proxy::proxies()) names.emplace_back(proxy.name);
  }
  for (const char* baseline : {"params", "macs"}) {
    if (std::find(names.begin(), names.end(), baseline) == names.end()) names.push_back(baseline);
  }
  for (const std::string& name : names) {
    options.proxies.push_back(&proxy::proxy_called(name));
    if (static_cast<int64_t>(options.proxies.back()->batches) > flags.batches) {
      refuse(fmt::format("--proxies {}: needs --batches {} at least", name,
                         options.proxies.back()->batches));
    }
  }
  options.seeds.assign(flags.seeds.begin(), flags.seeds.end());
  options.threads = static_cast<int>(flags.threads);
  prepare_torch(1);
  std::vector<ModelSpec> networks = networks_of(flags);
  if (!flags.truth.empty()) check_truth(flags.truth, networks);  // before anything is scored
  proxy::BatchSource batches = [&](const ModelSpec& spec) {
    return proxy::random_batches(spec, flags.batch_size, flags.batches,
                                 static_cast<uint64_t>(flags.seed));
  };
  std::optional<DataBatches> images;
  if (!flags.data.empty()) {
    images.emplace(flags.data, flags.batch_size, flags.batches);
    images->prepare(networks);
    batches = std::ref(*images);
  }
  if (!flags.inputs.empty()) write_inputs(flags.inputs, networks, options.seeds[0], batches);
  std::string all_names;
  for (const ModelSpec& spec : networks) all_names += spec_to_json(spec).dump();
  ScoreFile file(flags.output, flags.is_resumed,
                 {{"architectures", networks.size()},
                  {"hash", fmt::format("{:016x}", fnv1a(all_names))},
                  {"proxies", names},
                  {"data", flags.data},
                  {"batch_size", flags.batch_size},
                  {"batches", flags.batches},
                  {"seed", flags.seed},
                  {"seeds", flags.seeds}});
  std::vector<Json> lines = file.known();
  networks.erase(networks.begin(),
                 networks.begin() + static_cast<int64_t>(std::min(lines.size(), networks.size())));
  const StopSignal stop;
  Progress progress(std::cerr);
  const auto total = static_cast<int64_t>(networks.size());
  int64_t done = 0;
  if (total > 0) progress.begin("architectures", total);
  proxy::score_all(networks, options, batches, [&](const proxy::Scored& scored) {
    lines.push_back(to_json(scored, options));
    file.add(lines.back());
    progress.update(++done, scored.name);
    return stop.received() == 0;
  });
  if (stop.received() != 0) {
    progress.note(flags.output.empty()
                      ? "adjoin: stopped"
                      : "adjoin: stopped; go on with --resume --output " + flags.output);
    return 128 + stop.received();
  }
  if (total > 0) progress.finish("");
  const Json result = result_json(flags, names, lines);
  file.finish(result);
  if (flags.is_json) {
    print_json(result);
  } else {
    print_result(flags, names, result);
  }
  return 0;
}

}  // namespace adjoin::cli
