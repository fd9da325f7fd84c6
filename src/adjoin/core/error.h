#pragma once

// The one exception type of the project and the exit code each kind of failure maps to.

#include <stdexcept>
#include <string>

namespace adjoin {

/// What went wrong, named for whoever must act on it.
enum class ErrorKind { kUsage, kConfig, kData, kIo, kNumeric, kMissingPart, kMemory, kInternal };

/// 2 usage or config, 3 data or file, 4 numeric, 5 missing optional part, 1 the rest.
int exit_code(ErrorKind kind);

/// The text with line breaks and other control characters written as \xNN: whatever a file name or
/// an argument holds, an error stays one line.
std::string one_line(const std::string& text);

/// A failure a user can act on: one sentence saying what, which value, and what would be right.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace adjoin
