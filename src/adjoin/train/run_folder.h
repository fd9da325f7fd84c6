#pragma once

// A run on disk: config.yaml, log.jsonl, summary.csv, last.ckpt, model.safetensors and
// best.safetensors. One process writes it at a time.

#include <string>
#include <vector>

#include "adjoin/core/json.h"

namespace adjoin::train {

class RunFolder {
 public:
  /// Makes the folder where it is missing and takes hold of it. Error(kIo) when it cannot be
  /// written to or another run holds it; Error(kUsage) when a run has been there and `may_exist` is
  /// false.
  RunFolder(std::string path, bool may_exist);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /// Whether a run got far enough here to go on.
  bool has_checkpoint() const;

  /// Appends a line to log.jsonl.
  void log(const Json& line);

  /// Length of the log so far, to be kept in a checkpoint. Everything up to it is on the disk.
  int64_t sync_log();

  /// Drops what was logged after a checkpoint. Error(kData) when the log is shorter than that.
  void cut_log(int64_t bytes);

  /// Writes a text file whole or not at all.
  void write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
  int log_ = -1;  // descriptor of log.jsonl, which also carries the lock
};

/// `runs/<time>-<model>`.
std::string default_run_folder(const std::string& model);

}  // namespace adjoin::train
