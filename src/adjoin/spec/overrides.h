#pragma once

// `--set model.KEY=VALUE`: change any field of a spec, or all blocks at once.

#include <string>
#include <vector>

#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// One `KEY=VALUE`; the key is written as in the JSON of a spec ("img_size", "blocks.3.heads").
struct Override {
  std::string key;
  std::string value;
};

/// "img_size=384" -> {"img_size", "384"}. Error(kConfig) without a "=".
Override parse_override(const std::string& text);

/// The spec with the overrides applied, validated. Besides the fields of the JSON these keys write
/// all blocks at once: `depth`, `heads`, `head_dim`, `mlp_ratio`, `drop_path` (0 to this rate along
/// the depth) and, for Swin, `embed_dim` (of the first stage; every stage doubles it). A list
/// "2,2,6,2" gives one value per block, or per stage of a Swin. Unless given, head_dim is
/// embed_dim / heads and hidden keeps its ratio to embed_dim. A Swin's shifts follow its window.
/// `mixer`, `norm` and `shortcut` and their fields are those of all blocks; a word for a mixer or
/// shortcut brings the fields of its kind.
/// Whatever the order they are given in, whole-network keys act before those of single blocks.
ModelSpec with_overrides(const ModelSpec& spec, const std::vector<Override>& overrides);

/// Whether one of them names a mixer, a norm or a shortcut.
bool changes_parts(const std::vector<Override>& overrides);

}  // namespace adjoin
