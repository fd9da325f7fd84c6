#pragma once

// Keys of `--set model.` that write all blocks at once by a number, or by a list of them: depth,
// heads, head_dim, mlp_ratio, drop_path, embed_dim.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adjoin/spec/model_spec.h"

namespace adjoin {

inline constexpr std::string_view kShorthands[] = {"depth",     "heads",     "head_dim",
                                                   "mlp_ratio", "drop_path", "embed_dim"};

bool is_shorthand(std::string_view key);

/// Error(kConfig) about a key of the model.
[[noreturn]] void refuse_key(std::string_view key, const std::string& reason);

/// The values as the user gave them: one number for all, or one per block (Swin: per stage).
class Shorthands {
 public:
  void add(const std::string& key, const std::string& text);

  bool has(const std::string& key) const { return values_.contains(key); }
  bool is_list(const std::string& key) const { return has(key) && values_.at(key).size() > 1; }

  /// The value for unit `i` of `count`, if the key was given.
  std::optional<double> at(const std::string& key, size_t i, size_t count) const;

 private:
  std::map<std::string, std::vector<double>> values_;
};

/// Writes them into `spec`, of which the fields were changed already; `before` is what it was. A
/// Swin's shifts follow its window and size.
void apply_shorthands(const Shorthands& given, const ModelSpec& before, ModelSpec& spec);

}  // namespace adjoin
