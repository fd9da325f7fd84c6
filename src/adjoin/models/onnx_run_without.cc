#include "adjoin/io/onnx/export.h"
#include "adjoin/models/onnx_run.h"

namespace adjoin::models {

torch::Tensor run_onnx(const std::string& /*path*/, const torch::Tensor& input) {
  io::require_onnx();
  return input;
}

}  // namespace adjoin::models
