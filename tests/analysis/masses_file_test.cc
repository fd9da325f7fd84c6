#include "adjoin/analysis/masses_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin::analysis {
namespace {

class MassesFileTest : public testing::Test {
 protected:
  Masses read(const std::string& text) const { return read_masses(folder.write("a.csv", text)); }

  void expect_refused(const std::string& text,
                      std::initializer_list<std::string_view> parts) const {
    expect_error(ErrorKind::kData, {folder / "a.csv"}, [&] { read(text); });
    expect_error(ErrorKind::kData, parts, [&] { read(text); });
  }

  TempFolder folder;
};

using Values = std::vector<double>;

TEST_F(MassesFileTest, IsReadRowByRow) {
  const Masses masses = read("3,0.5,1\n1,-2e1,0\n");
  EXPECT_EQ(masses.mass, (Values{3, 1}));
  EXPECT_EQ(masses.points, (Values{0.5, 1, -20, 0}));
  EXPECT_EQ(masses.dim, 2);
}

TEST_F(MassesFileTest, MayHaveAHeadingSpacesCommentsAndEmptyLines) {
  const std::string text =
      "\xef\xbb\xbf# from a spreadsheet\r\n\r\n mass , x\r\n\t1 , +2 \r\n  # 5,5\r\n   \r\n0,-3";
  const Masses masses = read(text);
  EXPECT_EQ(masses.mass, (Values{1, 0}));
  EXPECT_EQ(masses.points, (Values{2, -3}));
  EXPECT_EQ(masses.dim, 1);
}

TEST_F(MassesFileTest, HasAHeadingOnlyInItsFirstRow) {
  expect_refused("mass,x\nmass,x\n1,2\n", {"a.csv:2: column 1 is \"mass\""});
  expect_refused("1,2\nmass,x\n", {"a.csv:2: column 1 is \"mass\""});
  expect_refused("1,x\n1,2\n", {"a.csv:1: column 2 is \"x\""});
  expect_refused("x,1\n1,2\n", {"a.csv:1: column 1 is \"x\""});
}

TEST_F(MassesFileTest, NamesARowOfAnotherLength) {
  expect_refused("1,2,3\n\n1,2\n", {"a.csv:3: has 2 columns, must have 3 as line 1"});
  expect_refused("# a comment\nmass,x\n1,2,3\n", {"a.csv:3: has 3 columns, must have 2 as line 2"});
  expect_refused("1,2\n1\n", {"a.csv:2: has 1 column, must have 2"});
  expect_refused("1,2\n1,2,\n", {"a.csv:2: has 3 columns"});
}

TEST_F(MassesFileTest, NeedsACoordinate) {
  expect_refused("1\n2\n", {"a.csv:1: has 1 column, must have at least 2: mass, coordinate"});
  expect_refused("1;2\n", {"a.csv:1: has 1 column"});
  expect_refused("mass\n1\n", {"a.csv:1: has 1 column"});
}

TEST_F(MassesFileTest, NeedsARow) {
  for (const std::string text : {"", "\n\n", "# nothing\n", "mass,x\n", "\xef\xbb\xbf", ",\n"}) {
    expect_refused(text, {"a.csv: has no masses"});
  }
}

TEST_F(MassesFileTest, NamesWhatIsNoNumber) {
  for (const std::string cell : {"x", "", "1.5.2", "0x10", "1e", "--1", "+-1", "++1", "+", "-",
                                 "1 2", "\"1\"", "1_000", "."}) {
    expect_refused("1,0\n1," + cell + "\n", {"a.csv:2: column 2 is ", "must be a finite number"});
  }
  for (const std::string cell : {"nan", "NaN", "inf", "-inf", "+infinity", "1e999", "-1e999"}) {
    expect_refused("1,0\n1," + cell + "\n", {"a.csv:2: column 2 is \"" + cell + "\""});
    expect_refused(cell + "," + cell + "\n", {"a.csv:1: column 1 is \"" + cell + "\""});
  }
}

TEST_F(MassesFileTest, NamesAMassBelowZero) {
  expect_refused("mass,x\n1,-1\n-0.5,1\n", {"a.csv:3: mass is -0.5, must be at least 0"});
}

TEST_F(MassesFileTest, StaysOneShortLineWhateverACellHolds) {
  const auto message_of = [&](const std::string& cell) {
    try {
      read("1,0\n1," + cell + "\n");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_TRUE(contains(message_of(std::string(100'000, 'x')), "..\""));
  for (const std::string& cell :
       {std::string(100'000, 'x'), std::string("\0\x01\x7f", 3), std::string("1\r2"),
        std::string(100'000, '9') + "x", std::string("\xff\xfe")}) {
    const std::string message = message_of(cell);
    EXPECT_FALSE(message.empty());
    EXPECT_LT(message.size(), 1000U);
    EXPECT_EQ(message, one_line(message));
  }
}

TEST_F(MassesFileTest, TakesManyColumnsAndDigits) {
  std::string row = "1";
  for (int i = 0; i < 5000; ++i) row += ",0." + std::string(40, '3');
  const Masses masses = read(row + "\n" + row + "\n");
  EXPECT_EQ(masses.dim, 5000);
  EXPECT_EQ(masses.mass.size(), 2U);
  EXPECT_EQ(masses.points.back(), 1.0 / 3);
}

TEST_F(MassesFileTest, RefusesBytesThatAreNoText) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 37 % 251);
  expect_refused("1,2\n" + bytes, {"a.csv:"});
  expect_refused(std::string(4096, '\0'), {"a.csv:1: has 1 column"});
  expect_refused(std::string(4096, ','), {"a.csv: has no masses"});
}

TEST_F(MassesFileTest, RefusesAFileThatIsTooLarge) {
  const std::string path = folder.write("large.csv", "1,2\n");
  ASSERT_EQ(truncate(path.c_str(), (int64_t{256} << 20) + 1), 0);  // sparse: takes no room
  expect_error(ErrorKind::kData, {"large.csv: larger than 268435456 bytes"},
               [&] { read_masses(path); });
}

TEST_F(MassesFileTest, SaysWhyItCannotBeOpened) {
  expect_error(ErrorKind::kIo, {"none.csv: No such file"},
               [&] { read_masses(folder / "none.csv"); });
  expect_error(ErrorKind::kIo, {"is a folder"}, [&] { read_masses(folder.path()); });
  expect_error(ErrorKind::kIo, {"device"}, [] { read_masses("/dev/zero"); });
}

}  // namespace
}  // namespace adjoin::analysis
