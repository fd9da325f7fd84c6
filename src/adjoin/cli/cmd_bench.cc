// adjoin bench: latency and throughput of networks, side by side.
#include <algorithm>
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/networks.h"
#include "adjoin/core/atomic_file.h"
#include "adjoin/core/progress.h"
#include "adjoin/core/table.h"
#include "adjoin/core/threads.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/timing.h"
#include "adjoin/tensor/device.h"

namespace adjoin::cli {
namespace {

struct Network {
  std::string name;
  Cost cost;
  int64_t img_size = 0;
};

/// {"name", "params", "macs", "runs": [{"batch", "ms", ..}]}, with speed-ups over the first
/// network.
Json to_json(const std::vector<Network>& networks,
             const std::vector<std::vector<models::Timing>>& timings) {
  Json result = Json::array();
  for (size_t i = 0; i < networks.size(); ++i) {
    Json runs = Json::array();
    for (size_t b = 0; b < timings[i].size(); ++b) {
      const models::Timing& timing = timings[i][b];
      runs.push_back({{"batch", timing.batch},
                      {"ms", timing.ms},
                      {"low_ms", timing.low_ms},
                      {"high_ms", timing.high_ms},
                      {"images_per_second", timing.images_per_second()},
                      {"memory_bytes", timing.memory_bytes},
                      {"speedup", timings[0][b].ms / timing.ms}});
    }
    const auto macs = [](const Network& network) {
      return static_cast<double>(network.cost.macs.total());
    };
    result.push_back({{"name", networks[i].name},
                      {"params", networks[i].cost.params},
                      {"macs", networks[i].cost.macs.total()},
                      {"mac_speedup", macs(networks[0]) / macs(networks[i])},
                      {"img_size", networks[i].img_size},
                      {"runs", runs}});
  }
  return result;
}

std::string table_text(const Json& networks) {
  Table table({"network", ">params", ">MACs", ">batch", ">ms", ">10 to 90 %", ">images/s",
               ">memory", ">faster", ">fewer MACs"});
  for (const Json& network : networks) {
    bool is_first = true;
    for (const Json& run : network.at("runs")) {
      const auto number = [&](const char* key) { return run.at(key).get<double>(); };
      const double memory = number("memory_bytes");
      table.add({is_first ? one_line(network.at("name")) : "",
                 is_first ? with_commas(network.at("params").get<int64_t>()) : "",
                 is_first ? short_count(network.at("macs").get<double>()) : "",
                 std::to_string(run.at("batch").get<int64_t>()),
                 fmt::format("{:.2f}", number("ms")),
                 fmt::format("{:.2f} to {:.2f}", number("low_ms"), number("high_ms")),
                 fmt::format("{:.1f}", number("images_per_second")),
                 memory == 0 ? "-" : short_bytes(memory), fmt::format("{:.2f}x", number("speedup")),
                 fmt::format("{:.2f}x", network.at("mac_speedup").get<double>())});
      is_first = false;
    }
  }
  return table.text();
}

/// The columns of timm's benchmark.py, one line per network and batch.
std::string csv_text(const Json& networks) {
  std::string text =
      "model,infer_samples_per_sec,infer_step_time,infer_batch_size,infer_img_size,infer_gmacs,"
      "param_count\n";
  for (const Json& network : networks) {
    for (const Json& run : network.at("runs")) {
      text += fmt::format(
          "{},{:.2f},{:.3f},{},{},{:.2f},{:.2f}\n", csv_cell(network.at("name").get<std::string>()),
          run.at("images_per_second").get<double>(), run.at("ms").get<double>(),
          run.at("batch").get<int64_t>(), network.at("img_size").get<int64_t>(),
          network.at("macs").get<double>() / 1e9, network.at("params").get<double>() / 1e6);
    }
  }
  return text;
}

}  // namespace

int run_bench(Args args) {
  CLI::App app("Times networks side by side: one image at a time, and many.", "bench");
  std::vector<std::string> names;
  ModelOptions options;
  ChoiceOptions choice;
  models::TimingOptions timing;
  timing.batches = {1, 8, 32};
  std::string device = "cpu", dtype = "float32", csv;
  int64_t threads = default_threads();
  bool is_json = false;
  app.add_option("FILE", names,
                 "model files, or names of the catalog; speed-ups are over the first")
      ->required();
  add_choice_options(app, choice);
  app.add_option("-b,--batch-size", timing.batches, "images in a pass, several after commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--rounds", timing.rounds, "timed passes of each, in turns")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--threads", threads, "of the CPU")
      ->check(whole_number(1, 1 << 12))
      ->capture_default_str();
  app.add_option("--device", device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--dtype", dtype, "float32, float64 or bf16")->capture_default_str();
  app.add_option("--csv", csv, "also write timm's benchmark columns here")->type_name("FILE");
  add_model_options(app, options, /*has_head_reset=*/false);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  timing.device = parse_device(device);
  timing.dtype = parse_dtype(dtype);
  prepare_torch(static_cast<int>(threads));

  std::optional<AtomicFile> csv_file;  // refused now rather than when all is measured
  if (!csv.empty()) csv_file.emplace(csv);
  std::vector<models::Model> loaded;
  std::vector<Network> networks;
  const auto add = [&](const std::string& name, models::Model model) {
    print_notes(model.notes);
    networks.push_back({name, cost(model.header.spec), model.header.spec.img_size});
    loaded.push_back(std::move(model));
  };
  for (const std::string& name : names) {
    models::Model large = load_network(name, options);
    const auto part = chosen_part(large.header.spec, choice.text());
    add(name, std::move(large));
    if (part) add(name + " (small)", load_network(name, options, choice.text()));
  }

  Progress progress(std::cerr);
  const auto results = models::time_networks(loaded, timing, [&](int64_t done, int64_t all) {
    if (done == 1) progress.begin("passes", all);
    progress.update(done, "");
  });
  const Json json = to_json(networks, results);
  if (csv_file) {
    csv_file->write(csv_text(json));
    csv_file->commit();
  }
  if (is_json) {
    print_json({{"device", device},
                {"dtype", dtype},
                {"threads", threads},
                {"rounds", timing.rounds},
                {"networks", json}});
  } else {
    std::cout << table_text(json);
  }
  return 0;
}

}  // namespace adjoin::cli
