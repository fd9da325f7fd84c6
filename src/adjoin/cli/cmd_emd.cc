// adjoin emd: the earth mover's distance between two files of masses, and its proof.
#include <algorithm>
#include <iostream>
#include <numeric>

#include "adjoin/analysis/emd.h"
#include "adjoin/analysis/masses_file.h"
#include "adjoin/cli/arguments.h"
#include "adjoin/core/table.h"

namespace adjoin::cli {
namespace {

constexpr int64_t kMostShown = 20;

Json emd_to_json(const analysis::Transport& result, analysis::GroundCost cost) {
  Json plan = Json::array();
  for (const auto& [from, to, mass] : result.plan) plan.push_back(Json::array({from, to, mass}));
  return {{"distance", result.distance},
          {"plan", std::move(plan)},
          {"dual", {{"u", result.u}, {"v", result.v}}},
          {"gap", result.gap},
          {"cost", enum_name(cost)}};
}

void print_shipments(std::vector<analysis::Shipment> plan) {
  const auto count = static_cast<int64_t>(plan.size());
  std::stable_sort(plan.begin(), plan.end(),
                   [](const auto& a, const auto& b) { return a.mass > b.mass; });
  if (count > kMostShown) {
    std::cout << fmt::format("The {} largest of {}:\n", kMostShown, with_commas(count));
  }
  Table table({">from", ">to", ">mass"});
  for (int64_t i = 0; i < std::min(count, kMostShown); ++i) {
    const auto& [from, to, mass] = plan[static_cast<size_t>(i)];
    table.add({std::to_string(from), std::to_string(to), fmt::format("{:.6g}", mass)});
  }
  std::cout << '\n' << table.text();
}

void print_emd(const analysis::Transport& result, const analysis::Masses& from,
               const analysis::Masses& to, analysis::GroundCost cost) {
  const double mass = std::accumulate(from.mass.begin(), from.mass.end(), 0.0);
  std::cout << fmt::format(
      "earth mover's distance  {} ({}), {:.6g} for each unit of mass\n"
      "{} from {} points to {}, which count from 0\n"
      "The dual values prove that no plan is cheaper by more than {:.2g}.\n",
      result.distance, enum_name(cost), result.distance / mass,
      so_many(std::ssize(result.plan), "shipment"), with_commas(std::ssize(from.mass)),
      with_commas(std::ssize(to.mass)), result.gap);
  print_shipments(result.plan);
}

}  // namespace

int run_emd(Args args) {
  CLI::App app("The least cost of moving the masses of one file to those of another.", "emd");
  std::string from_file;
  std::string to_file;
  std::string cost_name = "l2";
  bool is_json = false;
  app.add_option("FROM", from_file, "a CSV file with rows mass, coordinate, ..")->required();
  app.add_option("TO", to_file, "another with the same sum of masses")->required();
  app.add_option("--cost", cost_name,
                 "of moving a unit: the distance by l1 or l2, or sql2, the square of l2")
      ->capture_default_str();
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  auto cost = analysis::GroundCost::kL2;
  from_json(Json(cost_name), cost, "--cost");
  const analysis::Masses from = analysis::read_masses(from_file);
  const analysis::Masses to = analysis::read_masses(to_file);
  const analysis::Transport result = analysis::earth_movers_distance(from, to, cost);
  if (is_json) {
    print_json(emd_to_json(result, cost));
  } else {
    print_emd(result, from, to, cost);
  }
  return 0;
}

}  // namespace adjoin::cli
