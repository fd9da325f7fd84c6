#pragma once

// A network as an ONNX file: the ops of its spec, one by one, in the plain operators of opset 17
// that every runtime has. The batch is dynamic.

#include <functional>
#include <span>
#include <string>

#include "adjoin/io/model_file.h"

namespace adjoin::io {

struct OnnxOptions {
  /// The input is `pixels`, bytes as image readers give them (batch, height, width, channels), and
  /// the graph normalises; else it is `images`, normalised floats (batch, channels, height, width).
  bool has_preprocessing = false;
  /// Weights in a second file, OUT.data; also without this where one file would exceed 2 GB.
  bool has_external_data = false;
};

/// The values of a network's tensor, row-major in float32.
using TensorValues = std::function<std::vector<float>(const std::string& name)>;

/// Whether this build can write and read ONNX.
bool has_onnx();

/// Error(kMissingPart) in a build without ONNX.
void require_onnx();

/// Writes the file, whole or not at all, after ONNX's own checker has passed it. Class names,
/// preprocessing, spec and provenance are in its metadata, under the keys of our own files.
void export_onnx(const std::string& path, const ModelHeader& header, const TensorValues& values,
                 const OnnxOptions& options = {});

}  // namespace adjoin::io
