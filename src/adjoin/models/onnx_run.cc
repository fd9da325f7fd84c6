#include "adjoin/models/onnx_run.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <functional>
#include <map>

#include "adjoin/core/error.h"

namespace adjoin::models {
namespace {

/// A node with its attributes by name.
class Node {
 public:
  explicit Node(const onnx::NodeProto& node) : node_(node) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      attributes_[attribute.name()] = &attribute;
    }
  }

  int64_t integer(const std::string& name, int64_t otherwise) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? otherwise : found->second->i();
  }

  double real(const std::string& name, double otherwise) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? otherwise : found->second->f();
  }

  std::vector<int64_t> integers(const std::string& name) const {
    const auto found = attributes_.find(name);
    if (found == attributes_.end()) return {};
    return {found->second->ints().begin(), found->second->ints().end()};
  }

  const onnx::NodeProto& proto() const { return node_; }

 private:
  const onnx::NodeProto& node_;
  std::map<std::string, const onnx::AttributeProto*> attributes_;
};

using Values = std::vector<torch::Tensor>;
using Compute = std::function<Values(const Node& node, const Values& in)>;

std::vector<int64_t> numbers(const torch::Tensor& tensor) {
  const auto whole = tensor.to(torch::kInt64).contiguous().flatten();
  return {whole.data_ptr<int64_t>(), whole.data_ptr<int64_t>() + whole.numel()};
}

Values reshape(const Node& /*node*/, const Values& in) {
  std::vector<int64_t> shape = numbers(in[1]);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) shape[i] = in[0].size(static_cast<int64_t>(i));
  }
  return {in[0].reshape(shape)};
}

Values slice(const Node& /*node*/, const Values& in) {
  torch::Tensor x = in[0];
  const auto begins = numbers(in[1]), ends = numbers(in[2]), axes = numbers(in[3]);
  for (size_t i = 0; i < axes.size(); ++i) x = x.slice(axes[i], begins[i], ends[i]);
  return {x};
}

Values pad(const Node& /*node*/, const Values& in) {
  const std::vector<int64_t> sides = numbers(in[1]);  // begins of all axes, then ends
  std::vector<int64_t> from_last;
  for (size_t axis = sides.size() / 2; axis-- > 0;) {
    from_last.push_back(sides[axis]);
    from_last.push_back(sides[axis + sides.size() / 2]);
  }
  return {torch::constant_pad_nd(in[0], from_last)};
}

/// Gather: an index of several axes takes the place of one.
Values gather(const Node& node, const Values& in) {
  const int64_t axis = node.integer("axis", 0);
  const auto picked = in[0].index_select(axis, in[1].flatten());
  std::vector<int64_t> shape = in[0].sizes().vec();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, in[1].sizes().begin(), in[1].sizes().end());
  return {picked.view(shape)};
}

/// The operators that io/onnx writes.
const std::map<std::string, Compute>& operators() {
  static const std::map<std::string, Compute> table = {
      {"Add", [](const Node&, const Values& in) { return Values{in[0] + in[1]}; }},
      {"Sub", [](const Node&, const Values& in) { return Values{in[0] - in[1]}; }},
      {"Mul", [](const Node&, const Values& in) { return Values{in[0] * in[1]}; }},
      {"Div", [](const Node&, const Values& in) { return Values{in[0] / in[1]}; }},
      {"Erf", [](const Node&, const Values& in) { return Values{torch::erf(in[0])}; }},
      {"Exp", [](const Node&, const Values& in) { return Values{torch::exp(in[0])}; }},
      {"MatMul", [](const Node&, const Values& in) { return Values{torch::matmul(in[0], in[1])}; }},
      {"Identity", [](const Node&, const Values& in) { return Values{in[0]}; }},
      {"Cast", [](const Node&, const Values& in) { return Values{in[0].to(torch::kFloat32)}; }},
      {"Reshape", reshape},
      {"Slice", slice},
      {"Pad", pad},
      {"Gather", gather},
      {"Transpose", [](const Node& node,
                       const Values& in) { return Values{in[0].permute(node.integers("perm"))}; }},
      {"Split",
       [](const Node& node, const Values& in) {
         return in[0].chunk(node.proto().output_size(), node.integer("axis", 0));
       }},
      {"Concat", [](const Node& node,
                    const Values& in) { return Values{torch::cat(in, node.integer("axis", 0))}; }},
      {"Expand",
       [](const Node&, const Values& in) { return Values{in[0].expand(numbers(in[1]))}; }},
      {"Shape",
       [](const Node&, const Values& in) { return Values{torch::tensor(in[0].sizes().vec())}; }},
      {"Softmax",
       [](const Node& node, const Values& in) {
         return Values{torch::softmax(in[0], node.integer("axis", -1))};
       }},
      {"ReduceSum",
       [](const Node&, const Values& in) { return Values{in[0].sum(numbers(in[1]), true)}; }},
      {"ReduceMean",
       [](const Node& node, const Values& in) {
         return Values{in[0].mean(node.integers("axes"), node.integer("keepdims", 1) != 0)};
       }},
      {"LayerNormalization",
       [](const Node& node, const Values& in) {
         return Values{
             torch::layer_norm(in[0], in[1].sizes(), in[1], in[2], node.real("epsilon", 1e-5))};
       }},
      {"Conv",
       [](const Node& node, const Values& in) {
         return Values{torch::conv2d(in[0], in[1], in[2], node.integers("strides"))};
       }},
  };
  return table;
}

class Graph {
 public:
  explicit Graph(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(ErrorKind::kIo, path + ": cannot be opened");
    if (!model_.ParseFromIstream(&file)) throw Error(ErrorKind::kData, path + ": is no ONNX file");
    for (const onnx::TensorProto& tensor : model_.graph().initializer()) {
      values_[tensor.name()] = constant(tensor);
    }
  }

  torch::Tensor run(const torch::Tensor& input) {
    const onnx::GraphProto& graph = model_.graph();
    if (graph.input_size() != 1 || graph.output_size() != 1)
      fail("must have one input and one output");
    values_[graph.input(0).name()] = input;
    for (const onnx::NodeProto& proto : graph.node()) {
      const auto known = operators().find(proto.op_type());
      if (known == operators().end())
        fail("has the operator " + proto.op_type() + ", which we never write");
      Values in;
      for (const std::string& name : proto.input()) in.push_back(value(name));
      const Values out = known->second(Node(proto), in);
      for (int i = 0; i < proto.output_size(); ++i) {
        values_[proto.output(i)] = out.at(static_cast<size_t>(i));
      }
    }
    return value(graph.output(0).name());
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kData, path_ + ": " + what);
  }

  const torch::Tensor& value(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) fail("the value " + name + " is read before it is written");
    return found->second;
  }

  torch::Tensor constant(const onnx::TensorProto& proto) {
    const bool is_float = proto.data_type() == onnx::TensorProto::FLOAT;
    if (!is_float && proto.data_type() != onnx::TensorProto::INT64) {
      fail(proto.name() + " is of a type we never write");
    }
    const std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
    auto tensor = torch::empty(shape, is_float ? torch::kFloat32 : torch::kInt64);
    const std::string bytes =
        proto.data_location() == onnx::TensorProto::EXTERNAL ? outside(proto) : proto.raw_data();
    if (bytes.size() != tensor.nbytes())
      fail(proto.name() + " has another size than its shape says");
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.data_ptr()));
    return tensor;
  }

  /// Bytes in the file beside this one.
  std::string outside(const onnx::TensorProto& proto) const {
    std::map<std::string, std::string> said;
    for (const auto& entry : proto.external_data()) said[entry.key()] = entry.value();
    const std::string folder = path_.substr(0, path_.rfind('/') + 1);
    std::ifstream file(folder + said["location"], std::ios::binary);
    std::string bytes(std::stoull(said["length"]), '\0');
    file.seekg(static_cast<std::streamoff>(std::stoull(said["offset"])));
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
      fail(said["location"] + " is missing or too short");
    }
    return bytes;
  }

  std::string path_;
  onnx::ModelProto model_;
  std::map<std::string, torch::Tensor> values_;
};

}  // namespace

torch::Tensor run_onnx(const std::string& path, const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  return Graph(path).run(input);
}

}  // namespace adjoin::models
