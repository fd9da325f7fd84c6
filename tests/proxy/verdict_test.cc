#include "adjoin/proxy/verdict.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin::proxy {
namespace {

TEST(TruthTest, IsReadByNameAndColumn) {
  const TempFolder folder;
  folder.write("t.csv", "name, top1 ,second\r\na,70.5,1\r\n\r\nb, 71 ,2\n");
  const Truth truth = read_truth(folder / "t.csv");
  EXPECT_EQ(truth.columns, (std::vector<std::string>{"top1", "second"}));
  EXPECT_EQ(truth.rows.at("a"), (std::vector<double>{70.5, 1}));
  EXPECT_EQ(truth.rows.at("b"), (std::vector<double>{71, 2}));
}

TEST(TruthTest, NamesTheLineThatIsWrong) {
  const TempFolder folder;
  const auto refused = [&](const std::string& text, std::initializer_list<std::string_view> parts) {
    folder.write("t.csv", text);
    expect_error(ErrorKind::kData, parts, [&] { read_truth(folder / "t.csv"); });
  };
  refused("name,top1\na,1\na,2\n", {"line 3", "a came before"});
  refused("name,top1\na,x\n", {"line 2", "top1", "\"x\""});
  refused("name,top1\na,nan\n", {"line 2", "no number"});
  refused("name,top1\na,\n", {"line 2", "\"\""});
  refused("name,top1\na\n", {"line 2", "1 cells", "2"});
  refused("name\na\n", {"line 1", "heading"});
  refused("name,top1\n", {"no rows"});
  expect_error(ErrorKind::kIo, {"none.csv"}, [&] { read_truth(folder / "none.csv"); });
}

TEST(VerdictTest, SaysWhatAProxyKnowsBeyondSize) {
  std::vector<double> truth;
  std::vector<double> params;
  Scores size{"params", {}};
  Scores clever{"clever", {}};
  Scores broken{"broken", {}};
  for (int i = 0; i < 40; ++i) {
    const double hidden = std::sin(11.0 * i);  // what size does not tell
    params.push_back(i);
    truth.push_back(i + 30 * hidden);
    size.values.push_back(i);
    clever.values.push_back(i + 25 * hidden);
    broken.values.push_back(i % 10 == 0 ? NAN : i);
  }
  const auto found = verdicts({size, clever, broken}, params, truth);
  EXPECT_TRUE(std::isnan(found[0].partial_given_params));
  EXPECT_GT(found[1].spearman, found[0].spearman);
  EXPECT_GT(found[1].partial_given_params, 0.9);
  EXPECT_GT(found[1].low, found[0].spearman);
  EXPECT_LE(found[1].low, found[1].spearman);
  EXPECT_GE(found[1].high, found[1].spearman);
  EXPECT_EQ(found[2].not_finite, 4U);
  EXPECT_EQ(found[2].architectures, 36U);
  EXPECT_GE(found[0].regret_1, found[0].regret_5);
}

}  // namespace
}  // namespace adjoin::proxy
