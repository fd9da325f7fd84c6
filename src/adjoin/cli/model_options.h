#pragma once

// --model, --set and --reset-head: what a user says about a model file.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "adjoin/io/model_file.h"

namespace adjoin::cli {

struct ModelOptions {
  std::string model;
  std::vector<std::string> sets;
  bool is_head_reset = false;

  io::OpenOptions open() const;
};

/// `has_head_reset`: whether the command may start a new head.
void add_model_options(CLI::App& app, ModelOptions& options, bool has_head_reset);

/// Whether a user means a checkpoint, file or folder, rather than a name of the catalog.
bool is_checkpoint_path(const std::string& text);

/// The network a user means: a name of the catalog, a .json file with a spec, or a model file or
/// folder, whose tensors must fit (positions of another grid and heads of another class count
/// aside). `--set` is applied.
ModelSpec resolve_model(const std::string& name_or_file, const ModelOptions& options);

/// Notes go to standard error, so that results stay clean.
void print_notes(const std::vector<std::string>& notes);

/// Error(kUsage) unless the path ends in .safetensors, the one format we write.
void check_output_path(const std::string& path);

}  // namespace adjoin::cli
