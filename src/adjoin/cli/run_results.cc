#include "adjoin/cli/run_results.h"

#include <fmt/format.h>

#include <iostream>

#include "adjoin/core/table.h"
#include "adjoin/models/timing.h"

namespace adjoin::cli {

void add_latencies(const std::vector<Json*>& networks) {
  std::vector<models::Model> loaded;
  for (const Json* network : networks) {
    loaded.push_back(models::load(network->at("file").get<std::string>()));
  }
  const auto timings = models::time_networks(loaded, {});
  for (size_t i = 0; i < networks.size(); ++i) (*networks[i])["latency_ms"] = timings[i][0].ms;
}

void print_networks(const std::vector<std::vector<Json>>& runs) {
  Table table({"network", ">top1 %", ">params", ">MACs", ">of large", ">CPU ms"});
  for (const std::vector<Json>& networks : runs) {
    const auto large_macs = networks.at(0).at("macs").get<double>();
    for (const Json& network : networks) {
      const auto macs = network.at("macs").get<double>();
      table.add({network.at("file").get<std::string>(),
                 fmt::format("{:.2f}", network.at("top1").get<double>()),
                 with_commas(network.at("params").get<int64_t>()), short_count(macs),
                 fmt::format("{:.3f}", macs / large_macs),
                 fmt::format("{:.2f}", network.at("latency_ms").get<double>())});
    }
  }
  std::cout << table.text();
}

}  // namespace adjoin::cli
