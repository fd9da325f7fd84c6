#pragma once

// "Did you mean": the names nearest to a mistyped one, by edit distance.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace adjoin {

/// How many single-character insertions, deletions, replacements and swaps of neighbours turn
/// `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

/// The up to `most` names nearest to `name`, nearest first; empty when none is near.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names,
                                       size_t most = 3);

/// "; did you mean a, b or c?" or, when nothing is near, "; legal: a, b, c".
std::string suggestion(std::string_view name, std::span<const std::string> names);

/// "a, b, c".
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

}  // namespace adjoin
