// adjoin emd from end to end: an example by hand, what people read, refusals.
#include "cli/commands.h"
#include "support/temp_folder.h"

namespace adjoin {
namespace {

class EmdTest : public testing::Test {
 protected:
  EmdTest() {
    if (adjoin({"emd", from, to}).exit_code == 5) missing = "this build has no LEMON";
  }

  void SetUp() override {
    if (!missing.empty()) GTEST_SKIP() << missing;
  }

  const TempFolder folder;
  const std::string from = folder.write("from.csv", "mass,x\n2,0\n1,3\n");
  const std::string to = folder.write("to.csv", "1,1\n2,4\n");
  std::string missing;
};

TEST_F(EmdTest, SolvesAnExampleByHand) {
  const Json result = result_of({"emd", from, to});  // 1 x 1 from 0 to 1, 1 x 4 to 4, 1 x 1
  EXPECT_EQ(result["distance"], 6.0);
  EXPECT_EQ(result["gap"], 0.0);
  EXPECT_EQ(result["cost"], "l2");
  EXPECT_EQ(result_of({"emd", from, to, "--cost", "l1"})["distance"], 6.0);
  const Json squared = result_of({"emd", from, to, "--cost", "sql2"});
  EXPECT_EQ(squared["distance"], 18.0);
  EXPECT_EQ(squared["cost"], "sql2");
  EXPECT_EQ(squared["plan"], Json::parse("[[0, 0, 1], [0, 1, 1], [1, 1, 1]]"));
  const Json& u = squared["dual"]["u"];
  const Json& v = squared["dual"]["v"];
  ASSERT_EQ(u.size(), 2U);
  ASSERT_EQ(v.size(), 2U);
  const double costs[2][2] = {{1, 16}, {4, 1}};
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) EXPECT_LE(u[i].get<double>() + v[j].get<double>(), costs[i][j]);
  }
  EXPECT_EQ(
      2 * u[0].get<double>() + u[1].get<double>() + v[0].get<double>() + 2 * v[1].get<double>(),
      18);
}

TEST_F(EmdTest, SaysTheDistanceItsProofAndWhatGoesWhere) {
  const ProgramResult result = adjoin({"emd", from, to});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.err.empty()) << result.err;
  for (const std::string_view part :
       {"earth mover's distance  6 (l2), 2 for each unit of mass", "3 shipments from 2 points to 2",
        "no plan is cheaper by more than 0.", "from  to  mass"}) {
    EXPECT_TRUE(contains(result.out, part)) << part << " is not in: " << result.out;
  }
  EXPECT_FALSE(contains(result.out, "largest")) << result.out;
}

TEST_F(EmdTest, ShowsTheTwentyLargestShipmentsAndSaysOfHowMany) {
  std::string rows;
  for (int i = 0; i < 50; ++i) rows += std::to_string(i + 1) + "," + std::to_string(i) + ",0\n";
  const std::string many = folder.write("many.csv", rows);
  const ProgramResult result = adjoin({"emd", many, many});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "The 20 largest of 50:")) << result.out;
  EXPECT_TRUE(contains(result.out, "  49  49    50\n")) << result.out;
  EXPECT_TRUE(contains(result.out, "  30  30    31\n")) << result.out;
  EXPECT_FALSE(contains(result.out, "  29  29    30\n")) << result.out;
}

TEST_F(EmdTest, RefusesMassesThatDoNotBalance) {
  expect_refused(kBadData, {"adjoin: error: the masses of from sum to 3, those of to to 5"},
                 {"emd", from, folder.write("heavy.csv", "5,0\n")});
  expect_refused(kBadData, {"all 1 masses of to are 0"},
                 {"emd", from, folder.write("none.csv", "0,0\n")});
}

TEST_F(EmdTest, RefusesPointsOfAnotherSpace) {
  expect_refused(kBadData, {"from have 1 coordinates, those of to 2"},
                 {"emd", from, folder.write("plane.csv", "3,0,0\n")});
}

TEST_F(EmdTest, NamesTheFileAndTheLineThatIsWrong) {
  const std::string ragged = folder.write("ragged.csv", "1,2,3\n\n1,2\n");
  expect_refused(kBadData, {"ragged.csv:3: has 2 columns, must have 3 as line 1"},
                 {"emd", ragged, to});
  expect_refused(kBadData, {"word.csv:2: column 2 is \"x\", must be a finite number"},
                 {"emd", from, folder.write("word.csv", "1,2\n1,x\n")});
  expect_refused(kBadData, {"below.csv:1: mass is -1, must be at least 0"},
                 {"emd", from, folder.write("below.csv", "-1,2\n")});
  expect_refused(kBadData, {"no.csv: No such file"}, {"emd", folder / "no.csv", to});
  expect_refused(kBadData, {"is a folder"}, {"emd", from, folder.path()});
}

TEST_F(EmdTest, RefusesArgumentsItDoesNotKnow) {
  expect_refused(kUsage, {"--cost: unknown value \"l3\"; legal: l1, l2, sql2"},
                 {"emd", from, to, "--cost", "l3"});
  expect_refused(kUsage, {"TO is required"}, {"emd", from});
  expect_refused(kUsage, {"--json", "--help"}, {"emd", from, to, "--jsn"});
}

}  // namespace
}  // namespace adjoin
