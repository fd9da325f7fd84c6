#include "adjoin/models/onnx_run.h"

#include <ATen/WrapDimUtils.h>
#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <charconv>
#include <fstream>
#include <functional>
#include <map>

#include "adjoin/core/error.h"
#include "adjoin/tensor/device.h"

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

struct Operator {
  size_t inputs;  ///< at least
  Compute compute;
};

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
  for (size_t i = 0; i < axes.size(); ++i) x = x.slice(axes[i], begins.at(i), ends.at(i));
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
  const int64_t axis = at::maybe_wrap_dim(node.integer("axis", 0), in[0].dim());
  const auto picked = in[0].index_select(axis, in[1].flatten());
  std::vector<int64_t> shape = in[0].sizes().vec();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, in[1].sizes().begin(), in[1].sizes().end());
  return {picked.view(shape)};
}

/// To a common shape: each axis as long as the longer of the two.
Values expand(const Node& /*node*/, const Values& in) {
  return {in[0].expand(at::infer_size(in[0].sizes(), numbers(in[1])))};
}

Values top_k(const Node& node, const Values& in) {
  auto [values, places] = in[0].topk(numbers(in[1]).at(0), node.integer("axis", -1),
                                     node.integer("largest", 1) != 0, /*sorted=*/true);
  return {values, places};
}

/// Sums along an axis, of what stands before where it is exclusive.
Values cumulative_sum(const Node& node, const Values& in) {
  const auto sums = in[0].cumsum(numbers(in[1]).at(0));
  return {node.integer("exclusive", 0) != 0 ? sums - in[0] : sums};
}

/// The operators that io/onnx writes.
const std::map<std::string, Operator>& operators() {
  static const std::map<std::string, Operator> table = {
      {"Add", {2, [](const Node&, const Values& in) { return Values{in[0] + in[1]}; }}},
      {"Sub", {2, [](const Node&, const Values& in) { return Values{in[0] - in[1]}; }}},
      {"Mul", {2, [](const Node&, const Values& in) { return Values{in[0] * in[1]}; }}},
      {"Div", {2, [](const Node&, const Values& in) { return Values{in[0] / in[1]}; }}},
      {"Erf", {1, [](const Node&, const Values& in) { return Values{torch::erf(in[0])}; }}},
      {"Exp", {1, [](const Node&, const Values& in) { return Values{torch::exp(in[0])}; }}},
      {"MatMul",
       {2, [](const Node&, const Values& in) { return Values{torch::matmul(in[0], in[1])}; }}},
      {"Identity", {1, [](const Node&, const Values& in) { return Values{in[0]}; }}},
      {"Cast",
       {1, [](const Node&, const Values& in) { return Values{in[0].to(torch::kFloat32)}; }}},
      {"Reshape", {2, reshape}},
      {"Slice", {4, slice}},
      {"Pad", {2, pad}},
      {"Gather", {2, gather}},
      {"Transpose",
       {1, [](const Node& node,
              const Values& in) { return Values{in[0].permute(node.integers("perm"))}; }}},
      {"Split",
       {1,
        [](const Node& node, const Values& in) {
          return in[0].chunk(node.proto().output_size(), node.integer("axis", 0));
        }}},
      {"Concat",
       {1, [](const Node& node,
              const Values& in) { return Values{torch::cat(in, node.integer("axis", 0))}; }}},
      {"Expand", {2, expand}},
      {"TopK", {2, top_k}},
      {"CumSum", {2, cumulative_sum}},
      {"Neg", {1, [](const Node&, const Values& in) { return Values{-in[0]}; }}},
      {"Sqrt", {1, [](const Node&, const Values& in) { return Values{torch::sqrt(in[0])}; }}},
      {"Elu", {1, [](const Node&, const Values& in) { return Values{torch::elu(in[0])}; }}},
      {"Equal", {2, [](const Node&, const Values& in) { return Values{in[0] == in[1]}; }}},
      {"Greater", {2, [](const Node&, const Values& in) { return Values{in[0] > in[1]}; }}},
      {"GreaterOrEqual", {2, [](const Node&, const Values& in) { return Values{in[0] >= in[1]}; }}},
      {"Or", {2, [](const Node&, const Values& in) { return Values{in[0] | in[1]}; }}},
      {"Where",
       {3,
        [](const Node&, const Values& in) { return Values{torch::where(in[0], in[1], in[2])}; }}},
      {"ArgMax",
       {1,
        [](const Node& node, const Values& in) {
          return Values{in[0].argmax(node.integer("axis", 0), node.integer("keepdims", 1) != 0)};
        }}},
      {"GatherElements",
       {2, [](const Node& node,
              const Values& in) { return Values{in[0].gather(node.integer("axis", 0), in[1])}; }}},
      {"Log", {1, [](const Node&, const Values& in) { return Values{torch::log(in[0])}; }}},
      {"ReduceMax",
       {1,
        [](const Node& node, const Values& in) {
          return Values{in[0].amax(node.integers("axes"), node.integer("keepdims", 1) != 0)};
        }}},
      {"Shape",
       {1,
        [](const Node&, const Values& in) { return Values{torch::tensor(in[0].sizes().vec())}; }}},
      {"Softmax",
       {1,
        [](const Node& node, const Values& in) {
          return Values{torch::softmax(in[0], node.integer("axis", -1))};
        }}},
      {"ReduceSum",
       {2, [](const Node&, const Values& in) { return Values{in[0].sum(numbers(in[1]), true)}; }}},
      {"ReduceMean",
       {1,
        [](const Node& node, const Values& in) {
          return Values{in[0].mean(node.integers("axes"), node.integer("keepdims", 1) != 0)};
        }}},
      {"LayerNormalization",
       {3,
        [](const Node& node, const Values& in) {
          return Values{
              torch::layer_norm(in[0], in[1].sizes(), in[1], in[2], node.real("epsilon", 1e-5))};
        }}},
      {"Conv",
       {3,
        [](const Node& node, const Values& in) {
          return Values{torch::conv2d(in[0], in[1], in[2], node.integers("strides"))};
        }}},
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
    std::map<std::string, int> uses;  // still to come
    for (const onnx::NodeProto& proto : graph.node()) {
      for (const std::string& name : proto.input()) ++uses[name];
    }
    ++uses[graph.output(0).name()];
    for (const onnx::NodeProto& proto : graph.node()) {
      compute(proto);
      for (const std::string& name : proto.input()) {
        if (--uses[name] == 0) values_.erase(name);
      }
    }
    return value(graph.output(0).name());
  }

 private:
  void compute(const onnx::NodeProto& proto) {
    const auto known = operators().find(proto.op_type());
    if (known == operators().end()) {
      fail("has the operator " + proto.op_type() + ", which we never write");
    }
    Values in;
    for (const std::string& name : proto.input()) in.push_back(value(name));
    if (in.size() < known->second.inputs) fail(proto.name() + " has too few inputs");
    const Values out = known->second.compute(Node(proto), in);
    for (int i = 0; i < proto.output_size(); ++i) {
      values_[proto.output(i)] = out.at(static_cast<size_t>(i));
    }
  }

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
    constexpr int64_t kMost = int64_t{1} << 34;  // numbers of a tensor
    int64_t count = 1;
    for (const int64_t size : shape) {
      if (size < 0 || (size > 0 && count > kMost / size)) fail(proto.name() + " has no such shape");
      count *= size;
    }
    const size_t wanted = static_cast<size_t>(count) * (is_float ? sizeof(float) : sizeof(int64_t));
    const std::string bytes = proto.data_location() == onnx::TensorProto::EXTERNAL
                                  ? outside(proto, wanted)
                                  : proto.raw_data();
    if (bytes.size() != wanted) fail(proto.name() + " has another size than its shape says");
    auto tensor = torch::empty(shape, is_float ? torch::kFloat32 : torch::kInt64);
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.data_ptr()));
    return tensor;
  }

  /// Bytes in a file beside this one.
  std::string outside(const onnx::TensorProto& proto, size_t length) const {
    std::map<std::string, std::string> said;
    for (const auto& entry : proto.external_data()) said[entry.key()] = entry.value();
    const std::string location = said["location"];
    uint64_t offset = 0;
    const std::string& digits = said["offset"];
    const auto end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, offset);
    if (location.empty() || location.find('/') != std::string::npos || parsed.ptr != end ||
        parsed.ec != std::errc()) {
      fail(proto.name() + " does not say where in which file beside it its values are");
    }
    std::ifstream file(path_.substr(0, path_.rfind('/') + 1) + location, std::ios::binary);
    file.seekg(0, std::ios::end);
    const auto size = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
    if (!file || offset > size || length > size - offset)
      fail(location + " is missing or too short");
    std::string bytes(length, '\0');
    file.seekg(static_cast<std::streamoff>(offset));
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
      fail(location + " is missing or too short");
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
  try {
    return Graph(path).run(input);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    if (is_out_of_memory(e)) throw;
    const std::string what = e.what();
    throw Error(ErrorKind::kData,
                path + ": cannot be computed: " + what.substr(0, what.find('\n')));
  }
}

}  // namespace adjoin::models
