// adjoin compress: a large network and small ones inside its weights, trained together.
#include "adjoin/cli/arguments.h"
#include "adjoin/cli/run_command.h"
#include "adjoin/cli/run_results.h"
#include "adjoin/compress/job.h"

namespace adjoin::cli {
namespace {

/// What --alpha, --alphas or --keep said of the network at this place.
Json alpha_of(const Json& config, size_t network) {
  const Json& alpha = config.at("alpha");
  if (!alpha.empty()) return alpha.at(network);
  if (!config.at("alphas").get<std::string>().empty()) return config.at("alphas");
  return nullptr;
}

Json compression_json(const std::string& run, const train::Job& job,
                      const train::RunResult& result) {
  const auto file = [&](const std::string& name) { return run + "/" + name + ".safetensors"; };
  Json small = Json::array();
  for (size_t i = 0; i < job.inner.size(); ++i) {
    const auto& [name, derived, own, lr_scale] = job.inner[i];
    Json network = train::network_json(derived.spec, result.evaluations[i + 1], file(name));
    network["alpha"] = alpha_of(job.whole_config, i);
    small.push_back(std::move(network));
  }
  return {{"run", run},
          {"large", train::network_json(job.header.spec, result.evaluations[0], file(job.name))},
          {"small", small},
          {"epochs", result.epochs},
          {"seconds", result.seconds}};
}

void time_networks(Json& result) {
  std::vector<Json*> networks = {&result.at("large")};
  for (Json& small : result.at("small")) networks.push_back(&small);
  add_latencies(networks);
}

std::vector<std::string> compress_averages(const Json& result) {
  std::vector<std::string> pointers = {"/large/top1", "/seconds"};
  for (size_t i = 0; i < result.at("small").size(); ++i) {
    pointers.push_back(fmt::format("/small/{}/top1", i));
  }
  return pointers;
}

void print_compressions(const std::vector<Json>& runs) {
  std::vector<std::vector<Json>> networks;
  for (const Json& run : runs) {
    networks.push_back({run.at("large")});
    for (const Json& small : run.at("small")) networks.back().push_back(small);
  }
  print_networks(networks);
  if (runs.size() < 2) return;
  const std::vector<std::string> pointers = compress_averages(runs[0]);
  const Json all = over_seeds(runs, pointers);
  for (const std::string& pointer : pointers) {
    if (pointer == "/seconds") continue;
    const Json::json_pointer at(pointer);
    fmt::print("{} over {} seeds: {:.2f} +- {:.2f} %\n", pointer.substr(1), runs.size(),
               all.at("mean").at(at).get<double>(), all.at("std").at(at).get<double>());
  }
}

/// One of --alpha, --alphas and --keep on the command line stands for all three of a recipe.
void let_flags_choose(const CLI::App& app, compress::CompressConfig& config) {
  const bool has_alpha = app.count("--alpha") > 0;
  const bool has_alphas = app.count("--alphas") > 0;
  const bool has_keep = app.count("--keep") > 0;
  if (!has_alpha && !has_alphas && !has_keep) return;
  if (!has_alpha) config.alpha.clear();
  if (!has_alphas) config.alphas.clear();
  if (!has_keep) config.keep = 0;
}

ConfigFlagsOptions flag_options() {
  ConfigFlagsOptions options = train_flag_options();
  options.headings.insert(options.headings.begin(),
                          {{"alpha", "The small networks"}, {"lambda", "How they are taught"}});
  return options;
}

}  // namespace

int run_compress(Args args) {
  CLI::App app("Trains a large network and small ones inside its weights, and cuts them out.",
               "compress");
  RunFlags run_flags;
  add_run_flags(app, run_flags);
  ConfigFlags flags(app, compress::CompressConfig{}, flag_options());
  if (!parse(app, args)) return 0;
  const auto config = [&](const std::string& folder) {
    auto whole = resolved<compress::CompressConfig>(
        flags, run_flags, folder, "compress", [](auto& all) -> auto& { return all.train; });
    let_flags_choose(app, whole);
    return whole;
  };
  const auto prepare = [&](const std::string& folder, std::optional<int64_t> seed,
                           const train::Launch& launch) {
    compress::CompressConfig of_run = config(folder);
    of_run.train.seed = seed.value_or(of_run.train.seed);
    return compress::prepare(of_run, launch);
  };
  const auto train_config = [&](const std::string& folder) { return config(folder).train; };
  return run_command(run_flags, {train_config, prepare, compression_json, print_compressions,
                                 compress_averages, time_networks});
}

}  // namespace adjoin::cli
