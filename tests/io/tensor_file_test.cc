#include "adjoin/io/tensor_file.h"

#include <gtest/gtest.h>

#include "adjoin/core/text.h"

namespace adjoin::io {
namespace {

TEST(TensorFileTest, KnowsTheSizeAndTheWordOfEachType) {
  EXPECT_EQ(dtype_name(Dtype::kBool), "BOOL");
  EXPECT_EQ(item_size(Dtype::kBool), 1U);
  EXPECT_EQ(dtype_name(Dtype::kBF16), "BF16");
  EXPECT_EQ(item_size(Dtype::kBF16), 2U);
  EXPECT_EQ(dtype_name(Dtype::kF64), "F64");
  EXPECT_EQ(item_size(Dtype::kF64), 8U);
}

TEST(TensorFileTest, RowMajorStridesCountTheNumbersToTheRight) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (std::vector<int64_t>{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), std::vector<int64_t>{});
}

TEST(TensorFileTest, ATensorIsContiguousWhenItsNumbersFollowEachOther) {
  EXPECT_TRUE((StoredTensor{Dtype::kF32, {2, 3}, {3, 1}, nullptr}).is_contiguous());
  EXPECT_FALSE((StoredTensor{Dtype::kF32, {2, 3}, {1, 2}, nullptr}).is_contiguous());
  EXPECT_FALSE((StoredTensor{Dtype::kF32, {2, 3}, {6, 1}, nullptr}).is_contiguous());
  EXPECT_TRUE((StoredTensor{Dtype::kF32, {1, 3}, {99, 1}, nullptr}).is_contiguous());
  EXPECT_TRUE((StoredTensor{Dtype::kF32, {0, 3}, {7, 7}, nullptr}).is_contiguous());
  EXPECT_EQ((StoredTensor{Dtype::kF32, {2, 3}, {3, 1}, nullptr}).numel(), 6);
  EXPECT_EQ((StoredTensor{Dtype::kF32, {}, {}, nullptr}).numel(), 1);
}

TEST(TextTest, TellsUtf8FromOtherBytes) {
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"));
  for (const std::string_view broken :
       {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(broken)) << in_quotes(broken);
  }
}

TEST(TextTest, QuotesOnOneLineAndCutsWhatIsLong) {
  EXPECT_EQ(in_quotes("a\nb"), "\"a\\x0ab\"");
  EXPECT_LT(in_quotes(std::string(100000, 'x')).size(), 200U);
}

}  // namespace
}  // namespace adjoin::io
