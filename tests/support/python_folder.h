#pragma once

// Files that other programs write: a script of ours runs once in Debian's Python, with the
// libraries our users have, and fills a folder that is gone at the end.

#include <stdexcept>
#include <string>

#include "support/run_program.h"
#include "support/temp_folder.h"

namespace adjoin {

inline constexpr char kPython[] = "/usr/bin/python3";

class PythonFolder {
 public:
  /// `script` under tests/, called with the folder; `modules` as an import statement lists them.
  PythonFolder(const std::string& script, const std::string& modules) {
    const bool is_there = access(kPython, X_OK) == 0 &&
                          run_program(kPython, {"-c", "import " + modules}).exit_code == 0;
    if (!is_there) {
      missing_ = std::string(kPython) + " has no " + modules + " (tools/install-deps --test)";
      return;
    }
    const std::string path = std::string(ADJOIN_GOLDEN_DIR) + "/../" + script;
    const ProgramResult result = run_program(kPython, {"-W", "ignore", path, folder_.path()});
    if (result.exit_code != 0) throw std::runtime_error(path + ": " + result.err);
  }

  /// Why there are no files; empty if there are.
  const std::string& missing() const { return missing_; }

  std::string operator/(const std::string& name) const { return folder_ / name; }
  std::string path() const { return folder_.path(); }

 private:
  TempFolder folder_;
  std::string missing_;
};

}  // namespace adjoin
