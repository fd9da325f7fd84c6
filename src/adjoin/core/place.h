#pragma once

// What stands at a path. Not std::filesystem: PyTorch's wheels export one of another layout, and a
// program that is linked with both crashes.

#include <cstdint>
#include <optional>
#include <string>

namespace adjoin {

enum class Place { kNothing, kFile, kFolder, kOther };

/// Follows links. What cannot be looked at is nothing; opening it says why.
Place place_at(const std::string& path);

/// When a file was written, in nanoseconds since 1970; nothing where it cannot be looked at.
std::optional<int64_t> written_at(const std::string& path);

/// Makes the folder and those above it where they are missing. Error(kIo) when that fails, or a
/// file stands there.
void make_folders(const std::string& path);

}  // namespace adjoin
