#include "adjoin/spec/chosen_part.h"

#include <charconv>

#include "adjoin/core/fields.h"
#include "adjoin/spec/architecture.h"

namespace adjoin {
namespace {

std::vector<int64_t> parse_list(std::string_view text) {
  std::vector<int64_t> values;
  while (true) {
    const std::string_view item = text.substr(0, text.find(','));
    int64_t value = 0;
    const auto [end, failure] = std::from_chars(item.begin(), item.end(), value);
    if (failure != std::errc() || end != item.end()) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--alphas: \"{}\" is no whole number; give 1,2,2,4 or @FILE.json", item));
    }
    values.push_back(value);
    if (item.size() == text.size()) return values;
    text.remove_prefix(item.size() + 1);
  }
}

/// Two specs that differ in nothing a slice decides.
bool is_same_network(ModelSpec a, ModelSpec b) {
  for (ModelSpec* spec : {&a, &b}) {
    spec->name.clear();
    for_each_block(*spec, [](BlockSpec& block) { block.drop_path = 0; });
  }
  return a == b;
}

/// A file with an architecture, with the spec of the small network, or with a list of alphas.
Choice choice_from_file(const ModelSpec& large, const std::string& path, Geometry geometry) {
  const Json json = read_json_file(path);
  if (json.is_array()) {
    std::vector<int64_t> alphas;
    try {
      from_json(json, alphas, path);
    } catch (const Error& e) {
      throw Error(ErrorKind::kData, e.what());
    }
    return choice_from_alphas(large, alphas);
  }
  if (is_architecture(json)) return architecture_from_json(large, json, path);
  const ModelSpec small = spec_from_json(json, path);
  Choice choice = choice_between(large, small);
  if (!is_same_network(derive(large, choice, geometry).spec, small)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: {} is no part of {} in geometry {}: they differ in more than "
                            "blocks, heads and hidden units",
                            path, small.name, large.name, enum_name(geometry)));
  }
  return choice;
}

Choice choice(const ModelSpec& large, const ChoiceText& options, Geometry geometry) {
  if (options.alpha) return choice_from_alphas(large, {*options.alpha});
  if (options.keep) return choice_from_keep(large, *options.keep);
  if (options.alphas.starts_with('@')) {
    return choice_from_file(large, options.alphas.substr(1), geometry);
  }
  return choice_from_alphas(large, parse_list(options.alphas));
}

}  // namespace

std::optional<Derived> chosen_part(const ModelSpec& large, const ChoiceText& options) {
  const Geometry geometry = options.geometry;
  const int given =
      int{options.alpha.has_value()} + int{!options.alphas.empty()} + int{options.keep.has_value()};
  if (given > 1) throw Error(ErrorKind::kUsage, "give one of --alpha, --alphas and --keep");
  if (given == 0) {
    if (geometry == Geometry::kNarrow) {
      throw Error(ErrorKind::kUsage, "--geometry narrow needs --alpha, --alphas or --keep");
    }
    return std::nullopt;
  }
  return derive(large, choice(large, options, geometry), geometry);
}

}  // namespace adjoin
