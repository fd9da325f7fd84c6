#include "adjoin/spec/named.h"

#include "adjoin/core/yaml.h"
#include "adjoin/spec/autoformer.h"
#include "adjoin/spec/brief.h"
#include "adjoin/spec/catalog.h"

namespace adjoin {

bool is_spec_file(std::string_view name) { return name.ends_with(".json") || is_yaml_file(name); }

ModelSpec named_spec(const std::string& name_or_file) {
  if (!is_spec_file(name_or_file)) return catalog_spec(name_or_file);
  if (is_yaml_file(name_or_file)) return read_autoformer_network(name_or_file);
  const Json json = read_json_file(name_or_file);
  if (!is_brief(json)) return spec_from_json(json, name_or_file);
  try {
    return spec_from_brief(json);
  } catch (const Error& e) {
    throw Error(ErrorKind::kData, name_or_file + ": " + e.what());
  }
}

}  // namespace adjoin
