#include "adjoin/io/onnx/tools.h"

namespace adjoin::io {

std::string OnnxTools::transposed(const std::string& name) {
  const int64_t rows = shapes_.at(name).at(0);
  const int64_t columns = shapes_.at(name).at(1);
  const std::vector<float> from = values_(name);
  std::vector<float> to(from.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      to[static_cast<size_t>(j * rows + i)] = from[static_cast<size_t>(i * columns + j)];
    }
  }
  return graph_.constant(name, {columns, rows}, to);
}

std::string OnnxTools::slice(const std::string& x, int64_t begin, int64_t end, int64_t axis) {
  const auto one = [&](int64_t value) { return graph_.constant(std::vector<int64_t>{value}); };
  return graph_.node("Slice", {x, one(begin), one(end), one(axis)});
}

std::string OnnxTools::concat(const std::vector<std::string>& inputs, int64_t axis) {
  return inputs.size() == 1 ? inputs[0] : graph_.node("Concat", inputs, {{"axis", axis}});
}

std::string OnnxTools::reduce_sum(const std::string& x, int64_t axis) {
  return graph_.node("ReduceSum", {x, graph_.constant(std::vector<int64_t>{axis})});
}

std::string OnnxTools::pad(const std::string& x, int64_t rank, int64_t axis, int64_t before,
                           int64_t after) {
  if (before == 0 && after == 0) return x;
  std::vector<int64_t> sides(static_cast<size_t>(2 * rank), 0);
  sides[static_cast<size_t>(axis)] = before;
  sides[static_cast<size_t>(rank + axis)] = after;
  return graph_.node("Pad", {x, graph_.constant(sides)});
}

std::string OnnxTools::in_order(const std::string& x, const std::vector<int32_t>& rows) {
  return graph_.node("Gather", {x, graph_.constant(std::vector<int64_t>(rows.begin(), rows.end()))},
                     {{"axis", int64_t{1}}});
}

}  // namespace adjoin::io
