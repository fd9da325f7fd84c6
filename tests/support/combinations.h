#pragma once

// Every norm placement with every shortcut and every mixer that a small network can hold.

#include <string>
#include <vector>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"

namespace adjoin {

/// Of one small network of the catalog, with two blocks (in each stage).
inline std::vector<ModelSpec> combinations(const std::string& model) {
  const ModelSpec base = with_overrides(catalog_spec(model), {{"depth", "2"}});
  const std::vector<PlacedBlock> placed = placed_blocks(base);
  std::vector<ModelSpec> found;
  for (const auto& [norm, placement] : kEnumNames<NormPlacement>) {
    for (const char* shortcut : {"none", "circulant", "dense"}) {
      for (const auto& [mixer, kind] : kEnumNames<MixerKind>) {
        std::vector<Override> changes = {{"norm", std::string(norm)}, {"shortcut", shortcut}};
        bool is_held = true;
        for (const PlacedBlock& block : placed) {
          if (block.window && block.window->shift > 0) continue;  // keeps softmax
          is_held = is_held && (!block.window || kind == MixerKind::kSoftmax ||
                                kind == MixerKind::kLinformer || Mixer{.kind = kind}.is_linear());
          std::string path = block.name;
          if (block.window) path.replace(0, 6, "stages");
          changes.push_back({path + ".mixer", std::string(mixer)});
        }
        if (!is_held) continue;
        found.push_back(with_overrides(base, changes));
        found.back().name = fmt::format("{} {} {} {}", model, norm, shortcut, mixer);
      }
    }
  }
  return found;
}

}  // namespace adjoin
