#include "adjoin/io/onnx/export.h"

#include <fmt/format.h>
#include <onnx/checker.h>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/error.h"
#include "adjoin/io/onnx/ops.h"

namespace adjoin::io {
namespace {

constexpr int kOpset = 17;     // with LayerNormalization; the newest that Debian's ONNX 1.12 knows
constexpr int kIrVersion = 8;  // of ONNX 1.12

/// protobuf refuses messages of 2 GB; what is not weights fits the rest.
constexpr size_t kMostInOneFile = (size_t{1} << 31) - (size_t{1} << 26);

void declare(onnx::ValueInfoProto& value, const std::string& name, int type,
             const std::vector<int64_t>& shape) {
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const int64_t size : shape) tensor.mutable_shape()->add_dim()->set_dim_value(size);
}

/// Bytes (B, H, W, C) to what the network was trained on.
std::string normalised(OnnxGraph& graph, const Preprocessing& preprocessing,
                       const std::string& pixels) {
  constexpr double kWhite = 255;
  std::vector<float> scale, offset;
  for (size_t c = 0; c < preprocessing.mean.size(); ++c) {
    scale.push_back(static_cast<float>(1 / (kWhite * preprocessing.std[c])));
    offset.push_back(static_cast<float>(-preprocessing.mean[c] / preprocessing.std[c]));
  }
  graph.begin("preprocessing");
  const std::vector<int64_t> shape = {static_cast<int64_t>(scale.size()), 1, 1};
  const auto floats = graph.node("Cast", {pixels}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  const auto scaled = graph.node("Mul", {graph.transpose(floats, {0, 3, 1, 2}),
                                         graph.constant("preprocessing/scale", shape, scale)});
  return graph.node("Add", {scaled, graph.constant("preprocessing/offset", shape, offset)});
}

void write_graph(onnx::GraphProto& proto, const ModelHeader& header, const TensorValues& values,
                 const OnnxOptions& options) {
  const ModelSpec& spec = header.spec;
  OnnxGraph graph(proto);
  proto.set_name(spec.name);
  std::string images = "images";
  if (options.has_preprocessing) {
    declare(*proto.add_input(), "pixels", onnx::TensorProto::UINT8,
            {spec.img_size, spec.img_size, spec.in_chans});
    images = normalised(graph, header.preprocessing, "pixels");
  } else {
    declare(*proto.add_input(), images, onnx::TensorProto::FLOAT,
            {spec.in_chans, spec.img_size, spec.img_size});
  }
  const std::string last = write_ops(graph, spec, values, images);
  graph.begin("output");
  onnx::NodeProto& node = *proto.add_node();
  node.set_op_type("Identity");
  node.set_name("output/logits");
  node.add_input(last);
  node.add_output("logits");
  declare(*proto.add_output(), "logits", onnx::TensorProto::FLOAT, {spec.num_classes});
}

/// Moves the weights out of the message into a file beside it.
void move_out(onnx::GraphProto& graph, AtomicFile& file, const std::string& location) {
  constexpr size_t kAlignment = 4096;  // so that runtimes can map them
  size_t at = 0;
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.data_type() != onnx::TensorProto::FLOAT || tensor.dims_size() == 0) continue;
    const size_t gap = (kAlignment - at % kAlignment) % kAlignment;
    file.write(std::string(gap, '\0'));
    at += gap;
    const std::string bytes = std::move(*tensor.mutable_raw_data());
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto say = [&](const std::string& key, const std::string& value) {
      onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    say("location", location);
    say("offset", std::to_string(at));
    say("length", std::to_string(bytes.size()));
    file.write(bytes);
    at += bytes.size();
  }
}

size_t weight_bytes(const onnx::GraphProto& graph) {
  size_t total = 0;
  for (const onnx::TensorProto& tensor : graph.initializer()) total += tensor.raw_data().size();
  return total;
}

}  // namespace

bool has_onnx() { return true; }

void require_onnx() {}

void export_onnx(const std::string& path, const ModelHeader& header, const TensorValues& values,
                 const OnnxOptions& options) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
  model.set_producer_name("adjoin");
  for (const auto& [key, value] : to_metadata(header)) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  write_graph(*model.mutable_graph(), header, values, options);
  try {
    onnx::checker::check_model(model);
  } catch (const std::exception& e) {
    throw Error(ErrorKind::kInternal,
                fmt::format("ONNX's checker refuses the graph: {}", e.what()));
  }
  std::optional<AtomicFile> data;
  if (options.has_external_data || weight_bytes(model.graph()) > kMostInOneFile) {
    data.emplace(path + ".data");
    move_out(*model.mutable_graph(), *data, path.substr(path.rfind('/') + 1) + ".data");
  }
  std::string bytes;
  if (!model.SerializeToString(&bytes)) {
    throw Error(ErrorKind::kInternal, path + ": the graph cannot be written down");
  }
  AtomicFile file(path);
  file.write(bytes);
  if (data) data->commit();
  file.commit();
}

}  // namespace adjoin::io
