#include "adjoin/report/inspect_view.h"

#include <fmt/format.h>

#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/core/table.h"

namespace adjoin::report {
namespace {

// More than any network or run of ours has.
constexpr size_t kMostNetworks = 64;
constexpr size_t kMostLayers = 4096;
constexpr size_t kMostNameBytes = 200;

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::kData, "inspect: " + what);
}

const Json& list_of(const Json& object, const char* key, size_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) fail(fmt::format("{} is no list", key));
  if (found->size() > most) fail(fmt::format("{} has more than {} entries", key, most));
  return *found;
}

std::string given_name(const Json& object) {
  const auto found = object.find("name");
  if (found == object.end() || !found->is_string()) fail("a name is missing");
  auto name = found->get<std::string>();
  if (name.empty() || name.size() > kMostNameBytes) fail("a name is none");
  return name;
}

/// JSON has no NaN: null is a number that was none.
std::optional<double> number_of(const Json& layer, const char* key) {
  const auto found = layer.find(key);
  if (found == layer.end() || found->is_null()) return std::nullopt;
  if (!found->is_number()) fail(fmt::format("{} is no number", key));
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<InspectionView> inspections_of(const Json& line) {
  std::vector<InspectionView> result;
  const auto inspect = line.find("inspect");
  if (inspect == line.end() || inspect->is_null()) return result;
  const auto epoch = line.find("epoch");
  if (epoch == line.end() || !epoch->is_number_integer()) fail("epoch is no whole number");
  for (const Json& from : list_of(*inspect, "networks", kMostNetworks)) {
    InspectionView seen{epoch->get<int64_t>(), 0, given_name(from), {}};
    if (const auto batch = number_of(*inspect, "batch"); batch && *batch > 0 && *batch < 1e9) {
      seen.images = static_cast<int64_t>(*batch);
    }
    for (const Json& layer : list_of(from, "layers", kMostLayers)) {
      seen.layers.push_back({given_name(layer), number_of(layer, "residual_frobenius"),
                             number_of(layer, "token_cosine"), number_of(layer, "effective_rank"),
                             number_of(layer, "gradient_norm")});
    }
    result.push_back(std::move(seen));
  }
  return result;
}

void InspectionLog::take(const Json& line, int64_t number) {
  try {
    for (InspectionView& seen : inspections_of(line)) all_.push_back(std::move(seen));
  } catch (const std::exception&) {
    damaged_.push_back(number);
  }
}

std::optional<std::string> InspectionLog::problem(const std::string& file) const {
  if (damaged_.empty()) return std::nullopt;
  return fmt::format("What {} of {} say{} of the layers cannot be read, the first is line {}.",
                     so_many(std::ssize(damaged_), "line"), file, damaged_.size() == 1 ? "s" : "",
                     damaged_.front());
}

}  // namespace adjoin::report
