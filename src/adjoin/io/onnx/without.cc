// Where ONNX was not found: the command says what is missing.
#include "adjoin/core/error.h"
#include "adjoin/io/onnx/export.h"

namespace adjoin::io {

bool has_onnx() { return false; }

void require_onnx() {
  throw Error(ErrorKind::kMissingPart,
              "this build has no ONNX: install libonnx-dev and libprotobuf-dev and build again");
}

void export_onnx(const std::string& /*path*/, const ModelHeader& /*header*/,
                 const TensorValues& /*values*/, const OnnxOptions& /*options*/) {
  require_onnx();
}

}  // namespace adjoin::io
