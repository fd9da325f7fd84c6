#include "adjoin/io/tensor_file.h"

#include <algorithm>

namespace adjoin::io {
namespace {

struct DtypeRow {
  std::string_view name;
  size_t size;
};

/// In the order of the enumerators.
constexpr DtypeRow kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},   {"I16", 2}, {"I32", 4},
                                {"I64", 8},  {"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8}};
static_assert(std::size(kDtypes) == static_cast<size_t>(Dtype::kF64) + 1);

}  // namespace

size_t item_size(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].size; }

std::string_view dtype_name(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].name; }

int64_t StoredTensor::numel() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

bool StoredTensor::is_contiguous() const {
  if (numel() == 0) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;  // nobody steps along one item
    expected *= shape[i];
  }
  return true;
}

size_t StoredTensor::reach() const {
  if (numel() == 0) return 0;
  int64_t numbers = 1;
  for (size_t i = 0; i < shape.size(); ++i) numbers += (shape[i] - 1) * strides[i];
  return static_cast<size_t>(numbers) * item_size(dtype);
}

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

}  // namespace adjoin::io
