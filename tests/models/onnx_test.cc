// ONNX files beside the network they came from: computed by our own reader, and by ONNX Runtime.
#include <algorithm>
#include <cstdlib>

#include "adjoin/io/onnx/export.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/models/onnx_run.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/chosen_part.h"
#include "adjoin/spec/overrides.h"
#include "support/expect_error.h"
#include "support/random_choice.h"
#include "support/random_weights.h"
#include "support/run_program.h"
#include "support/seeded_test.h"
#include "support/temp_folder.h"

namespace adjoin::models {
namespace {

class OnnxTest : public SeededTest {
 protected:
  void SetUp() override {
    if (!io::has_onnx()) GTEST_SKIP() << "this build has no ONNX";
  }

  std::string exported(const ModelSpec& spec, const Weights& weights,
                       const io::OnnxOptions& options = {}) {
    io::ModelHeader header;
    header.spec = spec;
    header.preprocessing = default_preprocessing(spec);
    const std::string path = folder / "model.onnx";
    io::export_onnx(
        path, header,
        [&](const std::string& name) {
          const auto tensor = weights.at(name).to(torch::kFloat32).contiguous();
          const float* data = tensor.data_ptr<float>();
          return std::vector<float>(data, data + tensor.numel());
        },
        options);
    return path;
  }

  static torch::Tensor images(const ModelSpec& spec, int64_t count) {
    return torch::randn({count, spec.in_chans, spec.img_size, spec.img_size});
  }

  static torch::Tensor logits(const ModelSpec& spec, const Weights& weights,
                              const torch::Tensor& input) {
    const torch::NoGradGuard no_grad;
    return forward(spec, weights, input).logits();
  }

  static double difference(const torch::Tensor& a, const torch::Tensor& b) {
    return (a - b).abs().max().item<double>() / std::max(1.0, b.abs().max().item<double>());
  }

  TempFolder folder;
};

TEST_F(OnnxTest, RandomNetworksAndPartsOfThemAreComputedAlike) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const auto geometry = seed % 2 == 0 ? Geometry::kKept : Geometry::kNarrow;
    const auto factor = static_cast<int64_t>(1 + seed % 3);
    const ModelSpec large = random_divisible_spec(seed, seed % 3, factor);
    const Derived small = derive(large, random_choice(large, geometry, factor, seed), geometry);
    SCOPED_TRACE(large.name);
    const Weights weights = random_weights(large).to(torch::kCPU, torch::kFloat32);
    const Weights part = copies(small, weights);
    for (const int64_t batch : {1, 3}) {
      const auto input = images(large, batch);
      EXPECT_LT(
          difference(run_onnx(exported(large, weights), input), logits(large, weights, input)),
          1e-4);
      EXPECT_LT(
          difference(run_onnx(exported(small.spec, part), input), logits(small.spec, part, input)),
          1e-4);
    }
  }
}

TEST_F(OnnxTest, BytesAreNormalisedInTheGraph) {
  const ModelSpec spec = catalog_spec("swin_mini_32");
  const Weights weights = init(spec, 0);
  const auto pixels = torch::randint(0, 256, {2, 32, 32, 3}).to(torch::kUInt8);
  const Preprocessing how = default_preprocessing(spec);
  const auto vector = [](const std::vector<double>& v) {
    return torch::tensor(v, torch::kFloat32).view({-1, 1, 1});
  };
  const auto normalised =
      (pixels.permute({0, 3, 1, 2}).to(torch::kFloat32) / 255 - vector(how.mean)) / vector(how.std);
  const auto got = run_onnx(exported(spec, weights, {.has_preprocessing = true}), pixels);
  EXPECT_LT(difference(got, logits(spec, weights, normalised)), 1e-4);
}

TEST_F(OnnxTest, WeightsInASecondFileAreTheSame) {
  const ModelSpec spec = catalog_spec("t2t_mini_28");
  const Weights weights = init(spec, 0);
  const auto input = images(spec, 2);
  const auto whole = run_onnx(exported(spec, weights), input);
  const std::string path = exported(spec, weights, {.has_external_data = true});
  EXPECT_LT(read_file(path).size() * 4, read_file(path + ".data").size());
  EXPECT_TRUE(torch::equal(run_onnx(path, input), whole));
  truncate((path + ".data").c_str(), 1000);
  expect_error(ErrorKind::kData, {"model.onnx.data", "missing or too short"},
               [&] { run_onnx(path, input); });
}

TEST_F(OnnxTest, EqualModelsGiveEqualFiles) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const Weights weights = init(spec, 0);
  const std::string first = read_file(exported(spec, weights));
  EXPECT_EQ(read_file(exported(spec, weights)), first);
  EXPECT_NE(first.find("\"img_size\""), std::string::npos) << "the spec travels with it";
}

TEST_F(OnnxTest, DamagedFilesAreRefused) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const std::string bytes = read_file(exported(spec, init(spec, 0)));
  const auto input = images(spec, 1);
  expect_error(ErrorKind::kIo, {"none.onnx"}, [&] { run_onnx(folder / "none.onnx", input); });
  expect_error(ErrorKind::kData, {"cut.onnx", "is no ONNX file"}, [&] {
    run_onnx(folder.write("cut.onnx", bytes.substr(0, bytes.size() / 2)), input);
  });
  std::string other = bytes;
  for (size_t at = 0; (at = other.find("Softmax", at)) != std::string::npos;) {
    other.replace(at, 7, "Hardmax");
  }
  expect_error(ErrorKind::kData, {"Hardmax"},
               [&] { run_onnx(folder.write("other.onnx", other), input); });
}

/// A network of the catalog and, in words of the command line, the part of it that is meant.
struct RuntimeCase {
  std::string name;
  std::string model;
  ChoiceText choice = {};
  std::vector<Override> overrides = {};
};

class OnnxRuntimeTest : public OnnxTest, public testing::WithParamInterface<RuntimeCase> {
 protected:
  static std::string modules() {
    if (const char* path = std::getenv("NODE_PATH")) return path;
    const char* home = std::getenv("HOME");
    return std::string(home == nullptr ? "" : home) + "/.cache/adjoin/node/node_modules";
  }

  void write(const std::string& name, const torch::Tensor& tensor) {
    const auto whole = tensor.contiguous();
    folder.write(name, {static_cast<const char*>(whole.data_ptr()), whole.nbytes()});
  }

  /// Logits of the first image alone, then of all of them in batches of five.
  torch::Tensor run(const std::string& path, const ModelSpec& spec, const torch::Tensor& input) {
    write("images", input);
    const ProgramResult result = run_program(
        "/usr/bin/env",
        {"node", ADJOIN_GOLDEN_DIR "/../onnx/run.js", path, folder / "images", folder / "logits",
         std::to_string(spec.in_chans), std::to_string(spec.img_size)},
        {"NODE_PATH=" + modules()});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::string bytes = read_file(folder / "logits");
    EXPECT_EQ(bytes.size(), (input.size(0) + 1) * spec.num_classes * sizeof(float));
    return torch::from_blob(bytes.data(), {input.size(0) + 1, spec.num_classes}).clone();
  }
};

TEST_P(OnnxRuntimeTest, AgreesOnAHundredImages) {
  if (access((modules() + "/onnxruntime-node").c_str(), R_OK) != 0) {
    GTEST_SKIP() << "no ONNX Runtime for node; tools/install-deps --test installs it";
  }
  ModelSpec spec = with_overrides(catalog_spec(GetParam().model), GetParam().overrides);
  if (spec.img_size > 64 && std::getenv("ADJOIN_ALL_NETWORKS") == nullptr) {
    GTEST_SKIP() << "takes minutes; make onnx runs it";
  }
  Weights weights = random_weights(spec).to(torch::kCPU, torch::kFloat32);
  if (const auto part = chosen_part(spec, GetParam().choice)) {
    weights = copies(*part, weights);
    spec = part->spec;
  }
  const auto input = images(spec, 100);
  const auto wanted = logits(spec, weights, input);
  const auto got = run(exported(spec, weights), spec, input);
  const auto batches = got.slice(0, 1);
  double most = 1e-4;
  const bool is_lsh = placed_blocks(spec)[0].block->mixer.kind == MixerKind::kLsh;
  if (!is_lsh && difference(batches, wanted) > most) {  // perhaps float32 is no better here
    const auto exact =
        logits(spec, weights.to(torch::kCPU, torch::kFloat64), input.to(torch::kFloat64));
    most = 3 * difference(wanted, exact.to(torch::kFloat32));
  }
  EXPECT_LT(difference(got[0], wanted[0]), most) << "batch 1";
  EXPECT_LT(difference(batches, wanted), most) << "batch 5";
  EXPECT_EQ((batches.argmax(1) == wanted.argmax(1)).sum().item<int64_t>(), 100);
}

std::vector<RuntimeCase> runtime_cases() {
  std::vector<RuntimeCase> cases;
  for (const char* model :
       {"vit_mini_28", "t2t_mini_28", "swin_mini_28", "vit_mini_32", "t2t_mini_32", "swin_mini_32",
        "deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "t2t_vit_14"}) {
    const std::string name = model;
    const bool is_mini = name.find("_mini_") != std::string::npos;
    const int64_t alpha = is_mini || name == "t2t_vit_14" ? 2 : 3;
    cases.push_back({name, name});
    cases.push_back({name + "Small", name, {.alpha = alpha}});
    const ModelSpec spec = catalog_spec(name);
    std::string alphas;
    for (size_t i = 0; i < placed_blocks(spec).size(); ++i) {
      alphas += (i == 0 ? "" : ",") + std::to_string(i % 2 == 0 ? 1 : alpha);
    }
    cases.push_back({name + "Mixed", name, {.alphas = alphas}});
  }
  cases.push_back({"deit_tiny_distilled", "deit_tiny_distilled_patch16_224"});
  // A mixer in every block, with norms and shortcuts in turn.
  constexpr const char* kNorms[] = {"pre", "post", "res-post", "res-post-v2"};
  size_t index = 0;
  for (const auto& [word, kind] : kEnumNames<MixerKind>) {
    std::string name(word);
    std::vector<Override> changes = {{"mixer", name}, {"norm", kNorms[index % 4]}};
    if (index % 2 == 0) changes.push_back({"shortcut", index % 4 == 0 ? "circulant" : "dense"});
    std::replace(name.begin(), name.end(), '-', '_');
    cases.push_back({"mixer_" + name, "vit_mini_32", {.alpha = 2}, changes});
    const bool may_be_causal = default_mixer(kind, 65).is_sparse() || index > 4;
    changes.insert(changes.end(), {{"mixer.causal", "true"}, {"pool", "avg"}});
    if (may_be_causal) cases.push_back({"mixer_" + name + "_causal", "t2t_mini_32", {}, changes});
    ++index;
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Networks, OnnxRuntimeTest, testing::ValuesIn(runtime_cases()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace adjoin::models
