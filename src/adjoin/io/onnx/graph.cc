#include "adjoin/io/onnx/graph.h"

#include <fmt/format.h>

namespace adjoin::io {
namespace {

void set(onnx::AttributeProto& to, int64_t value) {
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(value);
}

void set(onnx::AttributeProto& to, float value) {
  to.set_type(onnx::AttributeProto::FLOAT);
  to.set_f(value);
}

void set(onnx::AttributeProto& to, const std::vector<int64_t>& values) {
  to.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) to.add_ints(value);
}

/// Row-major bytes, little-endian as ONNX has them.
template <class T>
void fill(onnx::TensorProto& tensor, const std::string& name, const std::vector<int64_t>& shape,
          const std::vector<T>& values, onnx::TensorProto::DataType type) {
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t size : shape) tensor.add_dims(size);
  tensor.set_raw_data(values.data(), values.size() * sizeof(T));
}

}  // namespace

void OnnxGraph::begin(const std::string& scope) {
  scope_ = scope;
  count_ = 0;
}

std::string OnnxGraph::fresh(const std::string& what) {
  return fmt::format("{}/{}_{}", scope_, what, count_++);
}

std::string OnnxGraph::node(const std::string& type, const std::vector<std::string>& inputs,
                            std::initializer_list<Attribute> attributes) {
  return node(type, inputs, attributes, 1).front();
}

std::vector<std::string> OnnxGraph::node(const std::string& type,
                                         const std::vector<std::string>& inputs,
                                         std::initializer_list<Attribute> attributes, int outputs) {
  onnx::NodeProto& made = *graph_.add_node();
  made.set_op_type(type);
  made.set_name(fresh(type));
  for (const std::string& input : inputs) made.add_input(input);
  for (const Attribute& attribute : attributes) {
    onnx::AttributeProto& to = *made.add_attribute();
    to.set_name(std::string(attribute.name));
    std::visit([&](const auto& value) { set(to, value); }, attribute.value);
  }
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) {
    names.push_back(outputs == 1 ? made.name() : fmt::format("{}.{}", made.name(), i));
    made.add_output(names.back());
  }
  return names;
}

std::string OnnxGraph::constant(const std::string& name, const std::vector<int64_t>& shape,
                                const std::vector<float>& values) {
  fill(*graph_.add_initializer(), name, shape, values, onnx::TensorProto::FLOAT);
  return name;
}

std::string OnnxGraph::integer(int64_t value) {
  const std::string name = fresh("integer");
  fill(*graph_.add_initializer(), name, {}, std::vector<int64_t>{value}, onnx::TensorProto::INT64);
  return name;
}

std::string OnnxGraph::constant(const std::vector<int64_t>& values) {
  const std::string name = fresh("integers");
  fill(*graph_.add_initializer(), name, {static_cast<int64_t>(values.size())}, values,
       onnx::TensorProto::INT64);
  return name;
}

std::string OnnxGraph::constant(double value) {
  return constant(fresh("number"), {}, {static_cast<float>(value)});
}

std::string OnnxGraph::reshape(const std::string& x, const std::vector<int64_t>& shape) {
  return node("Reshape", {x, constant(shape)});
}

std::string OnnxGraph::transpose(const std::string& x, const std::vector<int64_t>& order) {
  return node("Transpose", {x}, {{"perm", order}});
}

}  // namespace adjoin::io
