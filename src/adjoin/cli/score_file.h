#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/train/run_folder.h"

namespace adjoin::cli {

/// scores.jsonl of a run folder: a line per architecture, written as they come.
class ScoreFile {
 public:
  /// Without a folder nothing is kept. Error(kUsage) when scores are there and are not to go on, or
  /// were begun with other settings.
  ScoreFile(const std::string& folder, bool is_resumed, const Json& settings);

  /// What was scored before, in its order.
  const std::vector<Json>& known() const { return known_; }

  void add(const Json& line);

  /// Writes result.json and report.html.
  void finish(const Json& result) const;

 private:
  void read(const std::string& path, const Json& settings);

  std::optional<train::RunFolder> folder_;
  std::vector<Json> known_;
  std::ofstream out_;
};

}  // namespace adjoin::cli
