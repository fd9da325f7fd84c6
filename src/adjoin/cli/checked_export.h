#pragma once

// A model as an ONNX file, computed again from the file before it is called done.

#include <string>

#include "adjoin/core/signals.h"
#include "adjoin/io/onnx/export.h"
#include "adjoin/models/load.h"

namespace adjoin::cli {

struct CheckedExport {
  int64_t bytes = 0;      ///< of all files
  int64_t images = 0;     ///< that were computed on both sides
  int64_t agree = 0;      ///< of them, with the same answer
  double difference = 0;  ///< largest of a logit
};

/// Writes `path` once the file computes what the model does; an older file is replaced only then.
/// Error(kNumeric) when it does not. Stopped{signal} when a signal came, and nothing is written.
CheckedExport checked_export(models::Model model, const std::string& path,
                             const io::OnnxOptions& options, const StopSignal& stop);

}  // namespace adjoin::cli
