#include "fuzz/formats.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "adjoin/io/model_file.h"
#include "adjoin/io/pth.h"
#include "adjoin/io/safetensors.h"
#include "adjoin/spec/catalog.h"
#include "fuzz/data_formats.h"
#include "io/make_pickle.h"
#include "io/make_safetensors.h"

namespace adjoin::fuzz {
namespace {

using namespace io::pickled;
using io::number;

template <class T>
T load(const std::string& file, size_t at) {
  T value{};
  if (at <= file.size() && sizeof value <= file.size() - at) {
    std::memcpy(&value, file.data() + at, sizeof value);
  }
  return value;
}

std::string repeated(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

// ---- safetensors

std::vector<std::string> safetensors_headers() {
  std::string many = "{";
  for (int i = 0; i < 3000; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
            R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  return {R"({"a.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
          R"("b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})",
          R"({"__metadata__":{"format":"pt","\u00e9":"\ud83d\ude42"},)"
          R"("x":{"shape":[0,4],"dtype":"BF16","data_offsets":[0,0]},)"
          R"("y":{"data_offsets":[0,3],"dtype":"BOOL","shape":[1,3,1]}}   )",
          "{}", many + "}"};
}

/// With as much data as the header asks for, within reason.
std::string wrap_safetensors(const std::string& header) {
  constexpr std::string_view kField = "\"data_offsets\":[";
  constexpr size_t kMostData = 4096;
  size_t data_bytes = 0;
  for (size_t at = header.find(kField); at != std::string::npos; at = header.find(kField, at + 1)) {
    const size_t comma = header.find(',', at);
    if (comma == std::string::npos) break;
    const size_t end = std::strtoul(header.c_str() + comma + 1, nullptr, 10);
    if (end <= kMostData) data_bytes = std::max(data_bytes, end);
  }
  const auto bytes = io::make_safetensors(header, data_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> safetensors_tokens() {
  return {"{",
          "}",
          "[",
          "]",
          ",",
          ":",
          "\"",
          "\\u0041",
          "\\",
          "-1",
          "0",
          "1.5",
          "1e30",
          "null",
          "true",
          "18446744073709551615",
          "9223372036854775807",
          "\"__metadata__\":",
          "\"dtype\":",
          "\"shape\":",
          "\"data_offsets\":",
          "\"F64\"",
          "\"F8_E5M2\"",
          "[0,0]",
          "[0,0,0]",
          " ",
          "\n",
          "\xff",
          "\xc3\xa9",
          R"("z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"};
}

Region safetensors_focus(const std::string& file) {
  return {8, 8 + std::min<size_t>(load<uint64_t>(file, 0), file.size())};
}

/// The header ends at the last "}}", wherever that is now.
void repair_safetensors(std::string& file) {
  const size_t end = file.rfind("}}");
  if (file.size() < 8 || end == std::string::npos || end < 8) return;
  file.replace(0, 8, number<uint64_t>(end + 2 - 8));
}

// ---- .pth

std::string state_dict() {
  Tensor half;
  half.in = {"HalfStorage", "1", 8, {}, "torch"};
  half.shape = {2, 2};
  half.strides = {1, 2};
  half.offset = 3;
  const std::string parameter =
      call(global("torch._utils", "_rebuild_parameter"), tuple({tensor(half), "\x88", "}"}));
  return call(global("collections", "OrderedDict"), ")") + "q\x01(" + text("module.w") + "q\x02" +
         tensor() + text("module.half") + parameter + "u}" + text("_metadata") + "}sb";
}

std::vector<std::string> checkpoints() {
  const std::string args = global("argparse", "Namespace") + ")\x81}(" + text("lr") + "G" +
                           std::string(8, '\x3f') + "ub";
  const std::string framed = "\x95" + number<uint64_t>(20) + "\x8c\x05model\x94";
  return {state_dict(),
          dict({text("model"), state_dict(), text("epoch"), "K\x03", text("args"), args}),
          dict({text("state_dict"), state_dict(), text("optimizer"),
                dict({text("state"), dict({integer(0), dict({text("step"), tensor()})})}),
                text("log"), "](K\x01M\x01\x02J\x01\x02\x03\x04I01\nL5L\nF1.5\nNe"}),
          "}" + framed + dict({text("model_ema"), state_dict()}) + "s",
          dict({text("loop"),
                "]q\x07h\x07"
                "a",
                text("w"), tensor(), text("set"), "\x8f(K\x01\x90\x94"}),
          dict({text("w"), tensor(), text("lists"), repeated("]", 40000) + repeated("a", 39999),
                text("memo"), "](" + repeated("K\x01\x94", 20000) + "e"})};
}

/// The forms of the container take turns with the length of the pickle.
std::string wrap_zip(const std::string& value) {
  auto parts = members(value);
  parts.push_back({"archive/data/1", std::string(16, '\x11')});
  if (value.size() % 2 == 1) {
    for (io::ZipMember& part : parts) part.flags = 0;
    parts.push_back({"archive/byteorder", "little"});
  }
  io::ZipOptions options;
  options.has_end64 = value.size() % 3 != 2;
  return io::make_zip(parts, options);
}

std::string wrap_legacy(const std::string& value) {
  Legacy parts;
  if (value.find("HalfStorage") != std::string::npos) {
    parts.keys = "](" + text("0") + text("1") + "e";
    parts.storages += number<int64_t>(8) + std::string(16, '\x11');
  }
  return legacy(value, parts);
}

std::vector<std::string> pickle_tokens() {
  std::vector<std::string> tokens = {text("model"),
                                     text("storage"),
                                     text("0"),
                                     integer(-1),
                                     integer(INT64_MAX),
                                     integer(0),
                                     integers({2, 3}),
                                     storage({}),
                                     tensor(),
                                     "q\x01",
                                     "h\x01",
                                     "h\x02",
                                     "p9\n",
                                     "g9\n",
                                     global("os", "system"),
                                     call(global("os", "system"), ")"),
                                     global("a", "b"),
                                     global("collections", "OrderedDict"),
                                     global("torch._utils", "_rebuild_tensor_v2"),
                                     global("torch", "FloatStorage"),
                                     global("torch", "Size"),
                                     "PK\x05\x06",
                                     "PK\x06\x07",
                                     "PK\x01\x02"};
  for (const char c : std::string_view("(.012INFKMJLRQSTUVXBCabcdegijlopqrstu)]}G")) {
    tokens.emplace_back(1, c);
  }
  for (int code = 0x80; code <= 0x98; ++code) tokens.emplace_back(1, static_cast<char>(code));
  return tokens;
}

Region zip_focus(const std::string& file) {
  const size_t directory = file.find("PK\x01\x02");
  return {directory == std::string::npos ? 0 : directory, file.size()};
}

/// Gives every entry that the directory still finds its true CRC, so that the pickle is reached.
void repair_zip(std::string& file) {
  for (size_t at = file.find("PK\x01\x02"); at != std::string::npos;
       at = file.find("PK\x01\x02", at + 4)) {
    const size_t local = load<uint32_t>(file, at + 42);
    const size_t size = load<uint32_t>(file, at + 20);
    const size_t data =
        local + 30 + load<uint16_t>(file, local + 26) + load<uint16_t>(file, local + 28);
    if (file.size() < at + 46 || data > file.size() || size > file.size() - data) continue;
    const uint32_t crc = io::crc_of(file.substr(data, size));
    file.replace(at + 16, 4, number(crc));
    if (load<uint32_t>(file, local + 14) != 0) file.replace(local + 14, 4, number(crc));
  }
}

// ---- models: a spec and what else a header says, and how the tensors fit it

std::string model_header(const ModelSpec& spec) {
  Json header = Json::object();
  Json& metadata = header["__metadata__"] = Json::object();
  const io::ModelHeader model{spec, {"a", "b"}, default_preprocessing(spec), {1, "r", "p"}};
  for (const auto& [key, value] : io::to_metadata(model)) metadata[key] = value;
  int64_t offset = 0;
  for (const TensorInfo& info : tensors(spec)) {
    const int64_t end = offset + 2 * info.numel();
    header[info.name] = {
        {"dtype", "F16"}, {"shape", info.shape()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  return header.dump();
}

std::vector<std::string> model_headers() {
  const std::vector<Override> tiny = {{"embed_dim", "4"}, {"heads", "2"}, {"num_classes", "2"},
                                      {"img_size", "8"},  {"depth", "1"}, {"patch_size", "4"}};
  const ModelSpec vit = with_overrides(catalog_spec("vit_mini_32"), tiny);
  const ModelSpec swin = with_overrides(catalog_spec("swin_mini_32"), tiny);
  return {model_header(vit), model_header(swin), model_header(vit)};
}

std::vector<std::string> model_tokens() {
  std::vector<std::string> tokens = safetensors_tokens();
  for (const char* token :
       {"\\\"heads\\\":", "\\\"blocks\\\":[", "\\\"origin\\\":7", "adjoin.spec", "adjoin.classes",
        "{\\\"from\\\":0,\\\"to\\\":1,\\\"kind\\\":\\\"identity\\\"}", "\\\"vit\\\"",
        "\\\"swin\\\"", "1e99", "blocks.0.", "layers.0.downsample.", "head.fc.weight", "\\ud800",
        "1000000"}) {
    tokens.emplace_back(token);
  }
  return tokens;
}

io::TensorFile read_model(io::FileBytes file) {
  io::ModelFile model = io::open_model(io::read_safetensors(std::move(file)));
  const io::Fit fit = io::fit(model.header.spec, model.content);
  for (const io::Misfit& misfit : fit.misfits) io::as_resize(model.header.spec, misfit);
  if (!fit.is_exact()) throw Error(ErrorKind::kData, "file: " + io::describe(fit));
  return std::move(model.content);
}

Region whole_focus(const std::string& file) { return {0, file.size()}; }

void repair_nothing(std::string&) {}

constexpr size_t kMiB = size_t{1} << 20;

constexpr Format kFormats[] = {
    {"safetensors", kMiB, safetensors_headers, wrap_safetensors, safetensors_tokens,
     safetensors_focus, repair_safetensors, io::read_safetensors},
    {"model", 4 * kMiB, model_headers, wrap_safetensors, model_tokens, safetensors_focus,
     repair_safetensors, read_model},
    {"pth-zip", kMiB, checkpoints, wrap_zip, pickle_tokens, zip_focus, repair_zip, io::read_pth},
    {"pth-legacy", kMiB, checkpoints, wrap_legacy, pickle_tokens, whole_focus, repair_nothing,
     io::read_pth},
    {"idx", kMiB, idx_cores, wrap_idx, idx_tokens, whole_focus, repair_nothing, read_idx_file},
    {"cifar", kMiB, cifar_cores, wrap_cifar, cifar_tokens, whole_focus, repair_nothing,
     read_cifar_file},
    {"tar", kMiB, tar_cores, wrap_tar, tar_tokens, whole_focus, repair_tar, read_tar_file},
};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace adjoin::fuzz
