#pragma once

// Writes nodes and constants of an ONNX graph; names of values are what ties them together.

#include <onnx/onnx_pb.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace adjoin::io {

struct Attribute {
  std::string_view name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

class OnnxGraph {
 public:
  explicit OnnxGraph(onnx::GraphProto& graph) : graph_(graph) {}

  /// What is made from here on is named after an op of the network.
  void begin(const std::string& scope);

  /// A node; returns the name of its output.
  std::string node(const std::string& type, const std::vector<std::string>& inputs,
                   std::initializer_list<Attribute> attributes = {});

  /// A node with several outputs.
  std::vector<std::string> node(const std::string& type, const std::vector<std::string>& inputs,
                                std::initializer_list<Attribute> attributes, int outputs);

  /// A tensor that belongs to the graph.
  std::string constant(const std::string& name, const std::vector<int64_t>& shape,
                       const std::vector<float>& values);

  std::string constant(const std::vector<int64_t>& values);
  std::string constant(double value);

  /// A whole number without axes.
  std::string integer(int64_t value);

  std::string reshape(const std::string& x, const std::vector<int64_t>& shape);
  std::string transpose(const std::string& x, const std::vector<int64_t>& order);

 private:
  std::string fresh(const std::string& what);

  onnx::GraphProto& graph_;
  std::string scope_;
  int count_ = 0;  // of names in this scope
};

}  // namespace adjoin::io
