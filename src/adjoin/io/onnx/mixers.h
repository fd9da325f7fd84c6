#pragma once

// Every mixer of a spec in ONNX: from rows [q; k; v] of all heads to what the heads give.

#include <string>

#include "adjoin/io/onnx/tools.h"

namespace adjoin::io {

/// (B, N, 3 H d) -> (B, N, H d)
std::string write_attention(OnnxTools& tools, const AttentionOp& op, int64_t tokens,
                            const std::string& input);
std::string write_linformer(OnnxTools& tools, const LinformerOp& op, int64_t tokens,
                            const std::string& input);
std::string write_sparse(OnnxTools& tools, const SparseOp& op, int64_t tokens,
                         const std::string& input);

/// (B, N, 2 H d) -> (B, N, H d)
std::string write_lsh(OnnxTools& tools, const LshOp& op, int64_t tokens, const std::string& input);

/// Both the parallel and the sequential form: they are the same function.
std::string write_linear(OnnxTools& tools, const LinearMixerOp& op, int64_t tokens,
                         const std::string& input);

}  // namespace adjoin::io
