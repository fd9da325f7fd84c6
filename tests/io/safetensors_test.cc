#include "adjoin/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "io/make_safetensors.h"
#include "support/expect_error.h"

namespace adjoin::io {
namespace {

TensorFile read(const std::string& header, size_t data_bytes) {
  return read_safetensors(own_bytes("file", make_safetensors(header, data_bytes)));
}

/// The file is refused in a sentence that opens with its name and has these parts.
void expect_refused(const std::string& header, size_t data_bytes,
                    std::initializer_list<std::string_view> parts) {
  SCOPED_TRACE(header.substr(0, 200));
  expect_error(ErrorKind::kData, {"file: "}, [&] { read(header, data_bytes); });
  expect_error(ErrorKind::kData, parts, [&] { read(header, data_bytes); });
}

constexpr const char* kTwo = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                             R"("b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})";

TEST(SafetensorsTest, ReadsTensorsWhereTheyLie) {
  const TensorFile file = read(kTwo, 32);
  ASSERT_EQ(file.tensors.size(), 2U);
  const StoredTensor& a = file.tensors.at("a");
  EXPECT_EQ(a.dtype, Dtype::kF32);
  EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(a.strides, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(a.data, file.file.bytes.data() + 8 + std::strlen(kTwo));
  EXPECT_EQ(file.tensors.at("b").data, a.data + 24);
  EXPECT_EQ(file.tensors.at("b").numel(), 1);
}

TEST(SafetensorsTest, ReadsEveryTypeOfItsList) {
  for (const auto& [name, size] : {std::pair{"BOOL", 1},
                                   {"U8", 1},
                                   {"I8", 1},
                                   {"I16", 2},
                                   {"I32", 4},
                                   {"I64", 8},
                                   {"F16", 2},
                                   {"BF16", 2},
                                   {"F32", 4},
                                   {"F64", 8}}) {
    const std::string header = std::string(R"({"a":{"dtype":")") + name +
                               R"(","shape":[1],"data_offsets":[0,)" + std::to_string(size) + "]}}";
    EXPECT_EQ(dtype_name(read(header, static_cast<size_t>(size)).tensors.at("a").dtype), name);
  }
}

TEST(SafetensorsTest, ReadsMetadataPaddingAndAnEmptyFile) {
  const TensorFile file = read(R"({"__metadata__":{"format":"pt","née":"\u00e9"}}     )", 0);
  EXPECT_TRUE(file.tensors.empty());
  EXPECT_EQ(file.metadata.at("format"), "pt");
  EXPECT_EQ(file.metadata.at("née"), "é");
  EXPECT_TRUE(read("{}", 0).tensors.empty());
}

TEST(SafetensorsTest, ReadsTensorsOfNoBytes) {
  const TensorFile file = read(R"({"a":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},)"
                               R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                               R"("c":{"dtype":"F64","shape":[3,0],"data_offsets":[2,2]}})",
                               2);
  EXPECT_EQ(file.tensors.at("a").numel(), 0);
  EXPECT_EQ(file.tensors.at("c").numel(), 0);
}

TEST(SafetensorsTest, RefusesALengthThatTheFileDoesNotHave) {
  const auto refused = [](std::vector<std::byte> bytes, std::string_view part) {
    expect_error(ErrorKind::kData, {"file: ", part},
                 [&] { read_safetensors(own_bytes("file", std::move(bytes))); });
  };
  refused(to_bytes("1234567"), "is 7 bytes long");
  refused(to_bytes(std::string("\xff\0\0\0\0\0\0\0{}", 10)), "is cut short: its header is 255");
  refused(to_bytes(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)), "at most 100000000");
  refused(to_bytes(std::string("\0\0\0\0\0\0\0\0", 8)), "does not open with {");
  auto whole = make_safetensors(kTwo, 32);
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<int64_t>(size));
    EXPECT_THROW(read_safetensors(own_bytes("file", part)), Error) << size;
  }
}

TEST(SafetensorsTest, RefusesAHeaderThatIsNotJson) {
  expect_refused("[]", 0, {"does not open with {"});
  expect_refused(" {}", 0, {"does not open with {"});
  expect_refused("{} x", 0, {"not JSON (byte 4)"});
  expect_refused("{", 0, {"not JSON"});
  expect_refused("{\"a\"", 0, {"not JSON"});
  expect_refused("{\"\xff\":1}", 0, {"not UTF-8"});
  expect_refused(R"({"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}})", 4, {"not JSON"});
  expect_refused("{\"a\":" + std::string(100000, '['), 0, {"tensor \"a\" is a list"});
  expect_refused("{\"a\":{\"shape\":" + std::string(100000, '['), 0, {"\"a\"", "a list"});
}

TEST(SafetensorsTest, RefusesNamesAndFieldsThatStandTwice) {
  const std::string a = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  expect_refused("{" + a + "," + a + "}", 0, {"tensor \"a\" stands twice"});
  expect_refused(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0,
                 {"tensor \"a\"", "dtype twice"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[],"shape":[1],"data_offsets":[0,1]}})", 1,
                 {"tensor \"a\"", "shape twice"});
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, {"__metadata__ stands twice"});
  expect_refused(R"({"__metadata__":{"k":"1","k":"2"}})", 0, {"__metadata__ has \"k\" twice"});
}

TEST(SafetensorsTest, RefusesMissingAndUnknownFields) {
  expect_refused(R"({"a":{"shape":[0],"data_offsets":[0,0]}})", 0, {"\"a\" lacks its dtype"});
  expect_refused(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0, {"\"a\" lacks its shape"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[0]}})", 0, {"\"a\" lacks its data_offsets"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})", 0, {"[begin, end]"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})", 0,
                 {"more than two"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0,
                 {"tensor \"a\"", "unknown field \"x\"", "data_offsets"});
  expect_refused(R"({"a":{}})", 0, {"lacks"});
}

TEST(SafetensorsTest, RefusesValuesOfAnotherKind) {
  expect_refused(R"({"a":1})", 0, {"tensor \"a\" is 1; it must be an object"});
  expect_refused(R"({"a":null})", 0, {"tensor \"a\" is null"});
  expect_refused(R"({"a":"x"})", 0, {"tensor \"a\" is a string"});
  expect_refused(R"({"a":[]})", 0, {"tensor \"a\" is a list"});
  expect_refused(R"({"a":{"dtype":7}})", 0, {"\"a\" has 7 as its dtype; it must be a string"});
  expect_refused(R"({"a":{"dtype":["U8"]}})", 0, {"\"a\" has a list as its dtype"});
  expect_refused(R"({"a":{"shape":"1"}})", 0, {"\"a\" has a string as its shape"});
  expect_refused(R"({"a":{"shape":{}}})", 0, {"\"a\" has an object as its shape"});
  expect_refused(R"({"a":{"shape":true}})", 0, {"\"a\"", "shape; it must be a list of integers"});
  expect_refused(R"({"a":{"shape":["1"]}})", 0, {"\"a\" has a string in its shape"});
  expect_refused(R"({"a":{"shape":[-1]}})", 0, {"\"a\" has -1 in its shape"});
  expect_refused(R"({"a":{"shape":[1.5]}})", 0, {"\"a\" has the number 1.5 in its shape"});
  expect_refused(R"({"a":{"shape":[{}]}})", 0, {"\"a\" has an object in its shape"});
  expect_refused(R"({"a":{"data_offsets":[0,9223372036854775808]}})", 0, {"9223372036854775808"});
  expect_refused(R"({"a":{"data_offsets":[0,99999999999999999999999]}})", 0, {"data_offsets"});
  expect_refused(R"({"__metadata__":7})", 0, {"__metadata__ is 7", "object of strings"});
  expect_refused(R"({"__metadata__":{"k":7}})", 0, {"\"k\"", "strings only"});
  expect_refused(R"({"__metadata__":{"k":{}}})", 0, {"\"k\"", "strings only"});
}

TEST(SafetensorsTest, RefusesTypesItCannotRead) {
  expect_refused(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1,
                 {"tensor \"a\" has dtype \"F8_E4M3\"", "BOOL, U8, I8, I16, I32, I64, F16, BF16"});
  expect_refused(R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4, {"\"f32\""});
}

TEST(SafetensorsTest, RefusesShapesThatDoNotFitTheirBytes) {
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
                 {"tensor \"a\" has 4 bytes of data; shape [2] of F32 needs 8"});
  expect_refused(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,4]}})", 4, {"needs 0"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                 {"\"a\"", "too large"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})",
                 0, {"\"a\"", "too large"});
  expect_refused(R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0,
                 {"\"a\"", "too large"});
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1,
      {"\"a\" has more than 16 dimensions"});
}

TEST(SafetensorsTest, RefusesDataThatIsNotCoveredOnce) {
  const auto two = [](const char* first, const char* second) {
    return std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + first +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(read(two("[4,8]", "[0,4]"), 8).tensors.size(), 2U);
  expect_refused(two("[0,4]", "[4,8]"), 7, {"\"b\" lies at [4, 8], outside the 7 bytes"});
  expect_refused(two("[0,4]", "[8,4]"), 8, {"\"b\" lies at [8, 4]"});
  expect_refused(two("[0,4]", "[3,7]"), 8, {"\"b\" begins at byte 3", "overlap"});
  expect_refused(two("[0,4]", "[0,4]"), 8, {"begins at byte 0", "overlap"});
  expect_refused(two("[0,4]", "[5,9]"), 9, {"\"b\" begins at byte 5", "leave a hole"});
  expect_refused(two("[1,5]", "[5,9]"), 9, {"\"a\" begins at byte 1", "leave a hole"});
  expect_refused(two("[0,4]", "[4,8]"), 10, {"2 bytes after the last tensor"});
  expect_refused("{}", 1, {"1 bytes after the last tensor"});
}

TEST(SafetensorsTest, RefusesMoreTensorsThanAnyModelHas) {
  std::string header = "{";
  constexpr size_t kBytes = 200;
  for (size_t i = 0; i <= 100000; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[200],"data_offsets":[)" + std::to_string(i * kBytes) +
              "," + std::to_string((i + 1) * kBytes) + "]}";
  }
  expect_refused(header + "}", 100001 * kBytes, {"more than 100000 tensors"});
}

TEST(SafetensorsTest, RefusesAHeaderThatNeedsMoreMemoryThanTheFileIsWorth) {
  expect_refused("{\"" + std::string(2'000'000, 'n') + "\":1}", 0,
                 {"its header needs more memory"});
  expect_refused("{" + std::string(2'000'000, '\n') + "}", 0, {"its header needs more memory"});
  std::string many = "{";
  for (int i = 0; i < 50000; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
            R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  expect_refused(many + "}", 0, {"its header needs more memory"});
}

class SafetensorsFileTest : public testing::Test {
 protected:
  SafetensorsFileTest()
      : path_(testing::TempDir() + "adjoin_" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors") {}
  ~SafetensorsFileTest() override { std::filesystem::remove(path_); }

  const std::string path_;
};

TEST_F(SafetensorsFileTest, ReadsBackWhatWasWritten) {
  const std::vector<float> numbers = {1.5F, -2, 3, 4, 5, 6};
  const std::vector<uint8_t> flags = {1, 0, 1};
  const std::vector<int64_t> counts = {-7};
  write_safetensors(path_,
                    {{"flags", Dtype::kBool, {3}, std::as_bytes(std::span(flags))},
                     {"w\"\n\xc3\xa9", Dtype::kF32, {2, 3}, std::as_bytes(std::span(numbers))},
                     {"empty", Dtype::kF16, {0, 4}, {}},
                     {"count", Dtype::kI64, {}, std::as_bytes(std::span(counts))}},
                    {{"spec", "{\"a\": 1}"}});
  const TensorFile file = read_safetensors(map_file(path_));
  ASSERT_EQ(file.tensors.size(), 4U);
  EXPECT_EQ(file.metadata.at("spec"), "{\"a\": 1}");
  const StoredTensor& w = file.tensors.at("w\"\n\xc3\xa9");
  EXPECT_EQ(w.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(w.data, numbers.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.tensors.at("flags").data, flags.data(), 3), 0);
  EXPECT_EQ(std::memcmp(file.tensors.at("count").data, counts.data(), 8), 0);
  EXPECT_EQ(file.tensors.at("empty").numel(), 0);
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % item_size(tensor.dtype), 0U) << name;
  }
}

TEST_F(SafetensorsFileTest, WritesWiderTypesFirstAndPadsTheHeader) {
  const std::vector<std::byte> bytes(8);
  write_safetensors(path_,
                    {{"byte", Dtype::kU8, {1}, std::span(bytes).first(1)},
                     {"half", Dtype::kF16, {1}, std::span(bytes).first(2)},
                     {"long", Dtype::kI64, {1}, bytes},
                     {"bfloat", Dtype::kBF16, {1}, std::span(bytes).first(2)}},
                    {{"k", "v"}});
  std::ifstream in(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(text.size(), 8 + length + 13);
  EXPECT_EQ(
      text.substr(8, length).find_last_not_of(' ') + 1,
      std::string_view(
          R"({"__metadata__":{"k":"v"},"long":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
          R"("half":{"dtype":"F16","shape":[1],"data_offsets":[8,10]},)"
          R"("bfloat":{"dtype":"BF16","shape":[1],"data_offsets":[10,12]},)"
          R"("byte":{"dtype":"U8","shape":[1],"data_offsets":[12,13]}})")
          .size());
  EXPECT_LT(text.find("\"half\""), text.find("\"bfloat\""));
}

TEST_F(SafetensorsFileTest, RefusesToWriteWhatCouldNotBeRead) {
  const std::vector<std::byte> bytes(8);
  const auto refused = [&](ErrorKind kind, std::string_view part,
                           const std::vector<TensorToWrite>& tensors,
                           const std::map<std::string, std::string, std::less<>>& metadata = {}) {
    expect_error(kind, {path_, part}, [&] { write_safetensors(path_, tensors, metadata); });
    EXPECT_FALSE(std::filesystem::exists(path_));
  };
  refused(ErrorKind::kInternal, "\"a\" has 8 bytes; 1 numbers of F32",
          {{"a", Dtype::kF32, {1}, bytes}});
  refused(ErrorKind::kInternal, "impossible shape", {{"a", Dtype::kF32, {-2, -1}, bytes}});
  refused(ErrorKind::kInternal, "impossible shape",
          {{"a", Dtype::kU8, {int64_t{1} << 40, int64_t{1} << 40}, bytes}});
  refused(ErrorKind::kInternal, "\"a\" is given twice",
          {{"a", Dtype::kF64, {1}, bytes}, {"a", Dtype::kF64, {1}, bytes}});
  refused(ErrorKind::kInternal, "__metadata__", {{"__metadata__", Dtype::kF64, {1}, bytes}});
  refused(ErrorKind::kData, "not UTF-8", {{"\xff", Dtype::kF64, {1}, bytes}});
  refused(ErrorKind::kData, "not UTF-8", {}, {{"key", "\xc0\x80"}});
}

}  // namespace
}  // namespace adjoin::io
