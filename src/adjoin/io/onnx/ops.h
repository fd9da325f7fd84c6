#pragma once

#include "adjoin/io/onnx/export.h"
#include "adjoin/io/onnx/graph.h"
#include "adjoin/spec/ops.h"

namespace adjoin::io {

/// Writes the forward pass of a network; returns the name of the logits (batch, classes). `images`
/// is (batch, channels, height, width).
std::string write_ops(OnnxGraph& graph, const ModelSpec& spec, const TensorValues& values,
                      const std::string& images);

}  // namespace adjoin::io
