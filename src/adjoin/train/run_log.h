#pragma once

// What a run writes down as it goes: lines of log.jsonl and rows of summary.csv.

#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/train/observer.h"

namespace adjoin::train {

/// {"kind": "train", ..}: means since the last one. `terms`: names of the loss' parts.
Json step_line(const Position& position, const StepReport& report,
               const std::vector<std::string>& terms);

/// {"kind": "epoch", ..}. `small`: names of the networks inside the large one.
Json epoch_line(const Position& position, const EpochReport& report,
                const std::vector<std::string>& small);

/// timm's columns, and three per small network.
std::string summary_heading(const std::vector<std::string>& small);
std::string summary_row(const Position& position, const EpochReport& report);

}  // namespace adjoin::train
