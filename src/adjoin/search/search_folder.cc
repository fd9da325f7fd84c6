#include "adjoin/search/search_folder.h"

#include <algorithm>
#include <initializer_list>

#include "adjoin/core/config.h"
#include "adjoin/core/place.h"

namespace adjoin::search {

bool has_search(const std::string& folder) {
  const auto names = {"/search", "/scores.jsonl", "/study.db", "/teacher"};
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return place_at(folder + name) != Place::kNothing; });
}

void check_folder(const std::string& folder, bool is_resumed) {
  if (has_search(folder)) {
    if (is_resumed) return;
    throw Error(ErrorKind::kUsage, folder +
                                       ": holds a search already; go on with it by --resume, or "
                                       "choose another --output");
  }
  for (const char* above : {"/..", "/../.."}) {
    if (place_at(folder + "/log.jsonl") != Place::kFile) break;  // the folder beside a search
    if (place_at(folder + above + "/study.db") != Place::kFile) continue;
    throw Error(ErrorKind::kUsage,
                folder +
                    ": is part of another search; go on with that one, or choose another "
                    "--output");
  }
}

std::unique_ptr<train::RunFolder> held(const std::string& folder, const SearchConfig& config,
                                       bool is_resumed) {
  check_folder(folder, is_resumed);
  auto hold = std::make_unique<train::RunFolder>(folder, is_resumed);
  // While no search is there, these are the settings that count.
  if (!has_search(folder) || place_at(folder + "/config.yaml") != Place::kFile) {
    hold->write("config.yaml", config_yaml(config));
  }
  return hold;
}

}  // namespace adjoin::search
