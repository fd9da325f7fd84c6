#include "adjoin/train/checkpoint.h"

#include <gtest/gtest.h>

#include "adjoin/train/run_folder.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin::train {
namespace {

NamedTensors tensors() {
  return {{"a", torch::arange(6, torch::kFloat32).view({2, 3})},
          {"b", torch::full({}, 2.5, torch::kFloat64)}};
}

TEST(CheckpointTest, StateAndTensorsComeBack) {
  const TempFolder folder;
  const std::string path = folder / "last.ckpt";
  const Json state = {{"run", {{"epoch", 3}, {"text", "a \"quoted\" line\n"}}},
                      {"config", Json::object()},
                      {"inputs", Json::object()},
                      {"machine", Json::object()}};
  save_checkpoint(path, state, tensors());
  EXPECT_EQ(read_checkpoint_state(path), state);
  NamedTensors back = {{"a", torch::zeros({2, 3})}, {"b", torch::zeros({}, torch::kFloat64)}};
  restore_tensors(path, back);
  EXPECT_TRUE(torch::equal(back[0].second, tensors()[0].second));
  EXPECT_TRUE(torch::equal(back[1].second, tensors()[1].second));
}

TEST(CheckpointTest, AFileThatIsNoRunsIsRefused) {
  const TempFolder folder;
  save_checkpoint(folder / "a", {{"run", 3}}, tensors());
  expect_error(ErrorKind::kData, {"has no \"run\""}, [&] { read_checkpoint_state(folder / "a"); });
  save_checkpoint(folder / "b", Json::array(), tensors());
  expect_error(ErrorKind::kData, {"has no \"run\""}, [&] { read_checkpoint_state(folder / "b"); });
}

TEST(CheckpointTest, OneOfAnotherNetworkIsRefusedBeforeAnythingIsCopied) {
  const TempFolder folder;
  const std::string path = folder / "last.ckpt";
  save_checkpoint(path, Json::object(), tensors());
  NamedTensors other = {{"a", torch::zeros({2, 3})}, {"c", torch::zeros({})}};
  expect_error(ErrorKind::kData, {path, "no tensor c"}, [&] { restore_tensors(path, other); });
  EXPECT_EQ(other[0].second.abs().max().item<float>(), 0);
  expect_error(ErrorKind::kData, {"a is (2, 3)", "must be (3, 2)"}, [&] {
    restore_tensors(path, {{"a", torch::zeros({3, 2})}, {"b", torch::zeros({}, torch::kFloat64)}});
  });
  expect_error(ErrorKind::kData, {"holds 2 tensors, must hold 1"}, [&] {
    restore_tensors(path, {{"a", torch::zeros({2, 3})}});
  });
}

TEST(RunFolderTest, IsMadeWithThoseAboveItAndHeldByOneRun) {
  const TempFolder folder;
  const std::string path = folder / "runs/a/b";
  const RunFolder run(path + "/", false);
  EXPECT_EQ(run.path(), path);
  EXPECT_FALSE(run.has_checkpoint());
  expect_error(ErrorKind::kIo, {path, "another run"}, [&] { RunFolder(path, true); });
}

TEST(RunFolderTest, ARunThatIsThereIsNotWrittenOver) {
  const TempFolder folder;
  {
    const RunFolder run(folder / "r", false);
    run.write("last.ckpt", "x");
  }
  expect_error(ErrorKind::kUsage, {"holds a run already", "--resume"},
               [&] { RunFolder(folder / "r", false); });
  EXPECT_TRUE(RunFolder(folder / "r", true).has_checkpoint());
}

TEST(RunFolderTest, TheLogIsCutBackToWhereACheckpointWasMade) {
  const TempFolder folder;
  RunFolder run(folder / "r", false);
  run.log({{"step", 1}});
  const int64_t length = run.sync_log();
  run.log({{"step", 2}});
  run.cut_log(length);
  run.log({{"step", 3}});
  EXPECT_EQ(read_text_file(run / "log.jsonl", 1000), "{\"step\":1}\n{\"step\":3}\n");
  expect_error(ErrorKind::kData, {"log.jsonl", "1000"}, [&] { run.cut_log(1000); });
}

TEST(RunFolderTest, SaysWhyAFolderCannotBeUsed) {
  const TempFolder folder;
  RunFolder(folder / "r", false).write("file", "x");
  expect_error(ErrorKind::kIo, {"file"}, [&] { RunFolder(folder / "r/file/x", false); });
  expect_error(ErrorKind::kIo, {"is a file"}, [&] { RunFolder(folder / "r/file", false); });
  expect_error(ErrorKind::kIo, {"/proc"}, [&] { RunFolder("/proc/adjoin", false); });
}

}  // namespace
}  // namespace adjoin::train
