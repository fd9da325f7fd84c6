#include "adjoin/search/target.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "adjoin/core/error.h"

namespace adjoin::search {

double Target::share(const Price& price) const {
  double result = 0;
  const auto add = [&](const std::optional<int64_t>& limit, int64_t amount) {
    if (limit) result = std::max(result, static_cast<double>(amount) / static_cast<double>(*limit));
  };
  add(macs, price.macs);
  add(params, price.params);
  return result;
}

Json Target::json() const {
  Json json = Json::object();
  if (macs) json["macs"] = *macs;
  if (params) json["params"] = *params;
  return json;
}

int64_t parse_amount(const std::string& text, int64_t large, const std::string& flag) {
  const auto refuse = [&] {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: \"{}\" is no amount; give 0.45x of the large network, or a number "
                            "such as 300M or 1.2G",
                            flag, text));
  };
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  const std::string unit(stop, end);
  if (failure != std::errc() || !std::isfinite(value) || value <= 0 || unit.size() > 1) refuse();
  double factor = 1;
  switch (unit.empty() ? ' ' : unit[0]) {
    case ' ': break;
    case 'x': factor = static_cast<double>(large); break;
    case 'k':
    case 'K': factor = 1e3; break;
    case 'm':
    case 'M': factor = 1e6; break;
    case 'g':
    case 'G': factor = 1e9; break;
    default: refuse();
  }
  const double amount = value * factor;
  if (!(amount >= 1 && amount < 9e18)) refuse();
  return static_cast<int64_t>(amount);
}

}  // namespace adjoin::search
