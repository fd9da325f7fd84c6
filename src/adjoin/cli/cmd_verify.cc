// adjoin verify: our forward pass beside golden outputs of the authors' own code.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/core/table.h"
#include "adjoin/models/golden.h"
#include "adjoin/tensor/device.h"

namespace adjoin::cli {
namespace {

/// Largest logit error a correct implementation makes; the goldens' logits are of order 1.
double default_tolerance(torch::ScalarType dtype) {
  if (dtype == torch::kFloat64) return 1e-7;
  return dtype == torch::kFloat32 ? 1e-5 : 0.1;
}

models::GoldenReport verify_file(const std::string& file, torch::Device device,
                                 torch::ScalarType dtype) {
  const Json golden = read_json_file(file);
  try {
    return models::verify(golden, device, dtype);
  } catch (const Error& e) {
    throw Error(e.kind(), file + ": " + e.what());
  }
}

}  // namespace

int run_verify(Args args) {
  CLI::App app("Runs networks whose outputs the authors' own code recorded, and compares.",
               "verify");
  std::vector<std::string> files;
  std::string device_name = "cpu";
  std::string dtype_name = "float32";
  double tolerance = 0;
  bool is_json = false;
  app.add_option("GOLDEN", files, "golden files (.json)")->required();
  app.add_option("--device", device_name, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--dtype", dtype_name, "float32, float64 or bf16")->capture_default_str();
  app.add_option(
         "--tolerance", tolerance,
         "largest allowed difference of a logit (1e-7 in float64, 1e-5 in float32, 0.1 in bf16)")
      ->check(real_number(1e-300, 1e300));
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  const torch::Device device = parse_device(device_name);
  const torch::ScalarType dtype = parse_dtype(dtype_name);
  if (tolerance == 0) tolerance = default_tolerance(dtype);

  Table table({"model", ">logits off by", ">stages", ">off by", "counts", "verdict"});
  Json results = Json::array();
  std::string failed;
  for (const std::string& file : files) {
    const models::GoldenReport report = verify_file(file, device, dtype);
    const bool is_good = report.logits_error() <= tolerance && report.are_counts_equal;
    if (!is_good && failed.empty()) failed = report.spec.name;
    const std::string part = report.part.empty() ? "" : " (" + report.part + ")";
    table.add({report.spec.name + part, fmt::format("{:.1e}", report.logits_error()),
               std::to_string(report.rows.size() - 1), fmt::format("{:.1e}", report.stage_error()),
               report.are_counts_equal ? "equal" : "DIFFER", is_good ? "ok" : "FAILED"});
    Json rows = Json::object();
    for (const auto& row : report.rows) rows[row.name] = row.error;
    results.push_back({{"model", report.spec.name},
                       {"part", report.part},
                       {"ok", is_good},
                       {"counts_equal", report.are_counts_equal},
                       {"errors", rows}});
  }
  if (is_json) {
    print_json({{"device", device_name},
                {"dtype", dtype_name},
                {"tolerance", tolerance},
                {"results", results}});
  } else {
    std::cout << table.text();
  }
  if (!failed.empty()) {
    throw Error(ErrorKind::kNumeric,
                fmt::format("{} on {} in {} does not agree with its golden within {}", failed,
                            device_name, dtype_name, tolerance));
  }
  return 0;
}

}  // namespace adjoin::cli
