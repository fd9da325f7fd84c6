#include "adjoin/spec/overrides.h"

#include <algorithm>
#include <charconv>

#include "adjoin/spec/shorthands.h"

namespace adjoin {
namespace {

/// Fields of a block that, without a block before them, mean those of all blocks.
constexpr std::string_view kBlockKeys[] = {"mixer", "norm", "shortcut"};

bool is_block_key(std::string_view key) {
  const std::string_view first = key.substr(0, key.find('.'));
  return std::find(std::begin(kBlockKeys), std::end(kBlockKeys), first) != std::end(kBlockKeys);
}

/// Fields that say what the others mean.
bool is_fixed(std::string_view key) { return key == "family" || key == "version"; }

/// What a text means where `current` stands now: text for text, else JSON if it is JSON.
Json parse_value(const Json& current, const Override& change) {
  if (current.is_string() || !Json::accept(change.value)) return change.value;
  try {
    return parse_json(change.value, "model." + change.key);
  } catch (const Error& e) {
    throw Error(ErrorKind::kConfig, e.what());
  }
}

/// Writes `value` at the dotted path, which must exist.
void set_path(Json& root, const Override& change) {
  Json* at = &root;
  std::string path = "model";
  for (size_t begin = 0; begin <= change.key.size();) {
    const size_t end = std::min(change.key.find('.', begin), change.key.size());
    const std::string part = change.key.substr(begin, end - begin);
    if (at->is_array()) {
      size_t index = 0;
      const auto [stop, failure] = std::from_chars(part.data(), part.data() + part.size(), index);
      if (failure != std::errc() || stop != part.data() + part.size() || index >= at->size()) {
        throw Error(ErrorKind::kConfig,
                    fmt::format("{}: no entry \"{}\"; there are {}, counted from 0", path, part,
                                at->size()));
      }
      at = &(*at)[index];
    } else if (at->is_object() && at->contains(part)) {
      at = &(*at)[part];
    } else {
      std::vector<std::string> names;
      if (at->is_object()) {
        for (const auto& [key, value] : at->items()) {
          const bool is_listed = at == &root && (is_fixed(key) || is_shorthand(key));
          if (!is_listed) names.push_back(key);
        }
      }
      if (at == &root) {
        names.insert(names.end(), std::begin(kShorthands), std::end(kShorthands));
        names.insert(names.end(), std::begin(kBlockKeys), std::end(kBlockKeys));
      }
      throw Error(ErrorKind::kConfig,
                  names.empty()
                      ? fmt::format("{}: has no fields, so no \"{}\"", path, part)
                      : fmt::format("unknown key {}.{}{}", path, part, suggestion(part, names)));
    }
    path += "." + part;
    begin = end + 1;
  }
  *at = parse_value(*at, change);
}

/// A block as a path of the spec, and how many tokens see each other in it.
struct BlockPath {
  std::string text;  ///< "stages.0.blocks.1"
  int64_t tokens;
};

std::vector<BlockPath> block_paths(const ModelSpec& spec) {
  std::vector<BlockPath> paths;
  for (const PlacedBlock& placed : placed_blocks(spec)) {
    std::string text = placed.name;
    if (text.starts_with("layers.")) text.replace(0, 6, "stages");
    paths.push_back({text, placed.window ? placed.window->tokens() : placed.tokens});
  }
  return paths;
}

/// What a word for a mixer or a shortcut stands for in a block.
Json part_of_word(std::string_view field, const Json& current, const std::string& word,
                  int64_t tokens) {
  if (field.ends_with(".kind")) field.remove_suffix(sizeof(".kind") - 1);
  if (current.is_object() && current.value("kind", Json()) == word) return current;
  if (field == "mixer") {
    for (const auto& [name, kind] : kEnumNames<MixerKind>) {
      if (word == name) return to_json(default_mixer(kind, tokens));
    }
    return Json{{"kind", word}};
  }
  if (word == "none") return Json(nullptr);
  for (const auto& [name, kind] : kEnumNames<ShortcutKind>) {
    if (word == name) return to_json(Shortcut{.kind = kind});
  }
  return Json{{"kind", word}};
}

/// Whether a field of a block is a whole mixer or shortcut, or its kind.
bool is_part(std::string_view field) {
  return field == "mixer" || field == "mixer.kind" || field == "shortcut" ||
         field == "shortcut.kind";
}

/// Writes a field of one block; a word for its mixer or shortcut brings the fields of that kind.
void set_in_block(Json& root, const BlockPath& block, const std::string& field,
                  const std::string& value) {
  const std::string key = block.text + "." + field;
  if (!is_part(field) || Json::accept(value)) return set_path(root, {key, value});
  std::string pointer = "/" + block.text + "/" + field.substr(0, field.find('.'));
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  Json& current = root.at(Json::json_pointer(pointer));
  current = part_of_word(field, current, value, block.tokens);
}

}  // namespace

Override parse_override(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw Error(ErrorKind::kConfig, fmt::format("set: \"{}\" must be KEY=VALUE", text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

bool changes_parts(const std::vector<Override>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [](const Override& change) {
    if (is_block_key(change.key)) return true;
    return std::any_of(std::begin(kBlockKeys), std::end(kBlockKeys), [&](std::string_view part) {
      return change.key.find("." + std::string(part)) != std::string::npos;
    });
  });
}

ModelSpec with_overrides(const ModelSpec& spec, const std::vector<Override>& overrides) {
  Shorthands given;
  Json json = spec_to_json(spec);
  for (const Override& change : overrides) {
    if (is_fixed(change.key)) refuse_key(change.key, "cannot be changed");
    if (is_shorthand(change.key)) {
      given.add(change.key, change.value);
    } else if (change.key.find('.') == std::string::npos && !is_block_key(change.key)) {
      set_path(json, change);
    }
  }
  ModelSpec result = spec;
  read_spec_fields(json, result);
  apply_shorthands(given, spec, result);

  json = spec_to_json(result);
  const std::vector<BlockPath> blocks = block_paths(result);
  const auto block_of = [&](const Override& change) {
    return std::find_if(blocks.begin(), blocks.end(), [&](const BlockPath& path) {
      return change.key.starts_with(path.text + ".");
    });
  };
  // A kind brings its fields, so it comes before them.
  for (const bool is_kind : {true, false}) {
    for (const Override& change : overrides) {
      if (!is_block_key(change.key) || is_part(change.key) != is_kind) continue;
      for (const BlockPath& block : blocks) set_in_block(json, block, change.key, change.value);
    }
  }
  for (const bool is_kind : {true, false}) {
    for (const Override& change : overrides) {
      if (is_block_key(change.key) || change.key.find('.') == std::string::npos) continue;
      const auto block = block_of(change);
      const std::string field =
          block == blocks.end() ? "" : change.key.substr(block->text.size() + 1);
      if (is_part(field) != is_kind) continue;
      if (block == blocks.end()) {
        set_path(json, change);
      } else {
        set_in_block(json, *block, field, change.value);
      }
    }
  }
  return spec_from_json(json);
}

}  // namespace adjoin
