// adjoin export and adjoin bench, as a user runs them.
#include "adjoin/io/onnx/export.h"

#include <filesystem>
#include <iterator>

#include "adjoin/spec/catalog.h"
#include "cli/commands.h"
#include "support/model_files.h"
#include "support/temp_folder.h"

namespace adjoin {
namespace {

class BenchTest : public testing::Test {
 protected:
  BenchTest() {
    const ModelSpec spec = catalog_spec("swin_mini_28");
    io::ModelHeader header{spec, {}, default_preprocessing(spec), {}};
    for (int64_t i = 0; i < spec.num_classes; ++i)
      header.classes.push_back("kind-" + std::to_string(i));
    model = write_model(folder / "model.safetensors", spec, io::to_metadata(header));
  }

  TempFolder folder;
  std::string model;
};

class ExportTest : public BenchTest {
 protected:
  void SetUp() override {
    if (!io::has_onnx()) GTEST_SKIP() << "this build has no ONNX";
  }
};

TEST_F(ExportTest, WritesAFileThatItHasComputed) {
  const std::string out = folder / "model.onnx";
  const Json json = result_of({"export", model, out});
  EXPECT_EQ(json.at("input"), "images");
  EXPECT_EQ(json.at("agree"), json.at("images"));
  EXPECT_LT(json.at("difference").get<double>(), 1e-4);
  const std::string bytes = read_file(out);
  EXPECT_EQ(json.at("bytes"), bytes.size());
  for (const char* kept : {"kind-9", "crop_pct", "swin_mini_28"}) {
    EXPECT_NE(bytes.find(kept), std::string::npos) << kept;
  }
}

TEST_F(ExportTest, WritesAPartOfANetworkAndBytesAsInput) {
  const std::string out = folder / "small.onnx";
  const Json json =
      result_of({"export", model, out, "--alpha", "2", "--with-preprocessing", "--external-data"});
  EXPECT_EQ(json.at("input"), "pixels");
  EXPECT_EQ(json.at("bytes"), read_file(out).size() + read_file(out + ".data").size());
  EXPECT_LT(read_file(out + ".data").size(), read_file(model).size());
}

TEST_F(ExportTest, LeavesNothingBehindWhenItIsInterrupted) {
  const std::string place = folder / "place";
  std::filesystem::create_directory(place);
  const auto is_empty = [&] { return std::filesystem::is_empty(place); };
  RunningProgram program(ADJOIN_BINARY, {"export", "deit_tiny_patch16_224", place + "/model.onnx"});
  while (is_empty() && !program.is_over()) usleep(1000);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGINT);
  EXPECT_TRUE(is_empty());
}

TEST_F(ExportTest, ClearsWhatAKilledOneLeftAndNothingElse) {
  const std::string place = folder / "place";
  std::filesystem::create_directory(place);
  const auto count = [](auto entries) { return std::distance(entries, {}); };
  const auto files = [&] { return count(std::filesystem::directory_iterator(place)); };
  const auto begin = [&](RunningProgram& program) {  // its folder, and something in it
    while (count(std::filesystem::recursive_directory_iterator(place)) < 2 && !program.is_over()) {
      usleep(1000);
    }
    program.signal(SIGSTOP);
  };
  RunningProgram slow(ADJOIN_BINARY, {"export", "deit_tiny_patch16_224", place + "/a.onnx"});
  begin(slow);
  result_of({"export", model, place + "/b.onnx"});
  EXPECT_EQ(files(), 2) << "that of another process at work, and the file";
  slow.signal(SIGCONT);
  EXPECT_EQ(slow.wait().exit_code, 0);
  std::filesystem::remove(place + "/a.onnx");
  std::filesystem::remove(place + "/b.onnx");
  RunningProgram killed(ADJOIN_BINARY, {"export", "deit_tiny_patch16_224", place + "/a.onnx"});
  begin(killed);
  killed.signal(SIGKILL);
  killed.wait();
  EXPECT_EQ(files(), 1) << "what it was at";
  result_of({"export", model, place + "/b.onnx"});
  EXPECT_EQ(files(), 1);
  EXPECT_FALSE(read_file(place + "/b.onnx").empty());
}

TEST_F(ExportTest, SaysWhatIsWrong) {
  const std::string out = folder / "a.onnx";
  const std::string text = folder.write("text.safetensors", "no model");
  expect_refused(2, {"must end in .onnx"}, {"export", model, folder / "model.pb"});
  expect_refused(3, {"none.safetensors"}, {"export", folder / "none.safetensors", out});
  expect_refused(3, {"text.safetensors"}, {"export", text, out});
  expect_refused(3, {"cannot be written"}, {"export", model, folder / "no/such/folder.onnx"});
  expect_refused(2, {"alpha"}, {"export", model, out, "--alpha", "3"});
  EXPECT_TRUE(read_file(out).empty());
  const std::string older = folder.write("older.onnx", "what was there");
  std::filesystem::create_directory(folder / "folder.onnx");
  expect_refused(3, {"folder.onnx"}, {"export", model, folder / "folder.onnx", "--external-data"});
  expect_refused(2, {"alpha"}, {"export", model, older, "--alpha", "3"});
  EXPECT_EQ(read_file(older), "what was there");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".adjoin")) << "was left behind";
    EXPECT_FALSE(entry.path().string().ends_with(".data")) << "was left behind";
  }
}

TEST_F(BenchTest, TimesFilesAndNamesSideBySide) {
  const std::string csv = folder / "bench.csv";
  const Json json = result_of({"bench", "--batch-size", "1,2", model, "vit_mini_28", "--alpha", "2",
                               "--rounds", "3", "--threads", "1", "--csv", csv});
  EXPECT_EQ(json.at("threads"), 1);
  const Json& networks = json.at("networks");
  ASSERT_EQ(networks.size(), 4U) << "two networks, each with its small one";
  EXPECT_EQ(networks[1].at("name"), model + " (small)");
  EXPECT_GT(networks[1].at("mac_speedup").get<double>(), 1.5);
  for (const Json& network : networks) {
    ASSERT_EQ(network.at("runs").size(), 2U);
    for (const Json& run : network.at("runs")) {
      EXPECT_LE(run.at("low_ms").get<double>(), run.at("ms").get<double>());
      EXPECT_LE(run.at("ms").get<double>(), run.at("high_ms").get<double>());
      EXPECT_NEAR(run.at("images_per_second").get<double>(),
                  1e3 * run.at("batch").get<double>() / run.at("ms").get<double>(), 1e-6);
      EXPECT_GT(run.at("memory_bytes").get<int64_t>(), 0);
    }
    EXPECT_GT(network.at("runs")[1].at("memory_bytes"), network.at("runs")[0].at("memory_bytes"));
  }
  EXPECT_EQ(networks[0].at("runs")[0].at("speedup"), 1);
  const std::string lines = read_file(csv);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1 + 4 * 2);
  EXPECT_TRUE(lines.starts_with("model,infer_samples_per_sec,infer_step_time,infer_batch_size,"));
}

TEST_F(BenchTest, SaysWhatIsWrong) {
  const std::string text = folder.write("text.safetensors", "no model");
  expect_refused(3, {"text.safetensors"}, {"bench", text});
  expect_refused(2, {"vit_mini_28"}, {"bench", "vit_minni_28"});
  expect_refused(2, {"--batch-size"}, {"bench", "vit_mini_28", "--batch-size", "0"});
  expect_refused(2, {"FILE"}, {"bench"});
}

}  // namespace
}  // namespace adjoin
