// Files that PyTorch itself wrote, good and evil.

#include "adjoin/io/pth.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "adjoin/core/json.h"
#include "io/walk_tensor.h"
#include "support/expect_error.h"
#include "support/python_folder.h"

namespace adjoin::io {
namespace {

namespace fs = std::filesystem;

std::string hex_of(const StoredTensor& tensor) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  walk(tensor, [&](const std::byte* item) {
    for (size_t i = 0; i < item_size(tensor.dtype); ++i) {
      const auto byte = static_cast<unsigned>(item[i]);
      hex += {kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  });
  return hex;
}

class PthTest : public testing::Test {
 protected:
  static const PythonFolder& files() {
    static const PythonFolder folder("io/write_pth_files.py", "torch, numpy");
    return folder;
  }

  void SetUp() override {
    if (!files().missing().empty()) GTEST_SKIP() << files().missing();
  }

  static TensorFile read(const std::string& name) { return read_pth(map_file(files() / name)); }

  static void expect_refused(const std::string& name,
                             std::initializer_list<std::string_view> parts) {
    SCOPED_TRACE(name);
    expect_error(ErrorKind::kData, {name + ": "}, [&] { read("evil/" + name); });
    expect_error(ErrorKind::kData, parts, [&] { read("evil/" + name); });
    EXPECT_FALSE(fs::exists(files() / "evil/marker"));
  }
};

TEST_F(PthTest, ReadsEveryGoodFileBitForBit) {
  const Json expected = read_json_file(files() / "expected.json");
  EXPECT_GE(expected.size(), 25U);
  for (const auto& [name, contents] : expected.items()) {
    SCOPED_TRACE(name);
    const FileBytes bytes = map_file(files() / name);
    EXPECT_TRUE(looks_like_pth(bytes));
    const TensorFile file = read_pth(bytes);
    const Json& tensors = contents.at("tensors");
    EXPECT_EQ(file.tensors.size(), tensors.size());
    EXPECT_EQ(Json(file.not_tensors), contents.at("others"));
    for (const auto& [key, wanted] : tensors.items()) {
      ASSERT_TRUE(file.tensors.contains(key)) << key;
      const StoredTensor& tensor = file.tensors.find(key)->second;
      EXPECT_EQ(dtype_name(tensor.dtype), wanted.at(0).get<std::string>()) << key;
      EXPECT_EQ(Json(tensor.shape), wanted.at(1)) << key;
      EXPECT_EQ(hex_of(tensor), wanted.at(2).get<std::string>()) << key;
    }
  }
}

TEST_F(PthTest, LeavesTensorsWhereTheyLie) {
  const TensorFile file = read("views.pth");
  const StoredTensor& base = file.tensors.at("base");
  const StoredTensor& turned = file.tensors.at("turned");
  EXPECT_EQ(turned.data, base.data);
  EXPECT_EQ(turned.strides, (std::vector<int64_t>{1, 12}));
  EXPECT_FALSE(turned.is_contiguous());
  EXPECT_EQ(file.tensors.at("row").data, base.data + 24 * sizeof(float));
}

TEST_F(PthTest, ReadsStoragesBeyondFourGiBOfAFileThatIsMostlyAHole) {
  const std::string path = files() / "zip64.pth";
  EXPECT_GT(fs::file_size(path), uint64_t{4} << 30);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
  const TensorFile file = read("zip64.pth");
  EXPECT_GT(file.tensors.begin()->second.data - file.file.bytes.data(), int64_t{4} << 30);
}

TEST_F(PthTest, RefusesFilesThatCallWhatNoCheckpointNeedsAndRunsNothing) {
  for (const std::string container : {"zip", "legacy"}) {
    for (const std::string where : {"system", "system_beside", "system_inside"}) {
      expect_refused(container + "_" + where + ".pth",
                     {"its pickle calls posix.system, which no checkpoint needs; nothing was run"});
    }
    expect_refused(container + "_eval.pth", {"its pickle calls ", "builtin", ".eval", "nothing"});
  }
}

TEST_F(PthTest, RefusesWhatIsNoStateDict) {
  expect_refused("zip_loop.pth", {"holds a list instead of a state_dict"});
  expect_refused("legacy_loop.pth", {"holds a list instead of a state_dict"});
  expect_refused("zip_module.pth", {"holds an object of a class", "save model.state_dict()"});
  expect_refused("legacy_module.pth", {"holds an object of a class"});
  expect_refused("zip_script.pth", {"is a TorchScript archive; save the state_dict instead"});
  expect_refused("zip_expanded.pth", {"tensor \"weight\" repeats the same numbers"});
  expect_refused("legacy_expanded.pth", {"tensor \"weight\" repeats the same numbers"});
}

TEST_F(PthTest, RefusesAMillionListsInsideEachOther) {
  expect_refused("zip_deep.pth", {"its pickle needs more memory than"});
  expect_refused("legacy_deep.pth", {"its pickle needs more memory than"});
}

}  // namespace
}  // namespace adjoin::io
