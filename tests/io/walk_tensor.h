#pragma once

// Every number of a stored tensor, in row-major order.

#include "adjoin/io/tensor_file.h"

namespace adjoin::io {

/// Calls `visit` with the address of each number.
template <class Visit>
void walk(const StoredTensor& tensor, Visit visit) {
  const int64_t numel = tensor.numel();
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (int64_t i = 0; i < numel; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * tensor.strides[d];
    visit(tensor.data + static_cast<size_t>(offset) * item_size(tensor.dtype));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < tensor.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace adjoin::io
