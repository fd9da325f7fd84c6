#include "adjoin/core/yaml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "adjoin/core/rng.h"
#include "adjoin/core/text.h"
#include "support/expect_error.h"
#include "support/run_program.h"
#include "support/temp_folder.h"

namespace adjoin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string dump_of(const std::string& yaml) { return parse_yaml(yaml, "x.yaml").dump(); }

// ---- scalars

TEST(YamlScalarTest, IsTypedByTheCoreRulesOfYaml12) {
  EXPECT_EQ(dump_of("[true, True, FALSE, null, ~, Null]"), "[true,true,false,null,null,null]");
  EXPECT_EQ(dump_of("[0, -7, +3, 012, 0x1F, 0o17]"), "[0,-7,3,12,31,15]");
  EXPECT_EQ(dump_of("[1.5, .5, 2., -0.25, 1e-3, 5.0e-4, 1E3, 1e+2]"),
            "[1.5,0.5,2.0,-0.25,0.001,0.0005,1000.0,100.0]");
}

TEST(YamlScalarTest, IsTextWhereTheCoreRulesKnowNothingElse) {
  for (const char* text :
       {"yes", "no", "on", "off", "y",   "1_000", "1:30", "0x",    "0b1",        "e5",
        ".",   "-",  "1e", "1e+", "inf", "nan",   "--1",  "1.2.3", "2001-01-01", "0o8"}) {
    EXPECT_EQ(yaml_scalar(text), Json(text)) << text;
  }
}

TEST(YamlScalarTest, IsTextInQuotes) {
  EXPECT_EQ(dump_of(R"(["1", '2', "true", 'null', "", !!str 5])"),
            R"(["1","2","true","null","","5"])");
}

TEST(YamlScalarTest, KnowsInfinityAndNan) {
  EXPECT_EQ(yaml_scalar(".inf").get<double>(), kInfinity);
  EXPECT_EQ(yaml_scalar("-.Inf").get<double>(), -kInfinity);
  EXPECT_TRUE(std::isnan(yaml_scalar(".nan").get<double>()));
}

TEST(YamlScalarTest, HoldsAllOf64BitsAndRefusesMore) {
  EXPECT_EQ(dump_of("[-9223372036854775808, 9223372036854775807, 18446744073709551615]"),
            "[-9223372036854775808,9223372036854775807,18446744073709551615]");
  for (const char* text :
       {"18446744073709551616", "-9223372036854775809", "1e999", "1e-999", "0x10000000000000000"}) {
    expect_error(ErrorKind::kConfig, {"x.yaml:2: ", text, "64 bits"},
                 [&] { parse_yaml("a: 1\nb: " + std::string(text), "x.yaml"); });
  }
}

// ---- documents

TEST(ParseYamlTest, ReadsMapsListsAndBlocksInTheirOrder) {
  EXPECT_EQ(
      dump_of("# recipe\nz: 1\na:\n  - x y  # comment\n  - {k: v, e: }\nm: |\n  one\n  two\n"),
      R"({"z":1,"a":["x y",{"k":"v","e":null}],"m":"one\ntwo\n"})");
}

TEST(ParseYamlTest, ReadsNothingAsNull) {
  for (const char* text : {"", "\n", "# only a comment", "---\n", "\xef\xbb\xbf"}) {
    EXPECT_TRUE(parse_yaml(text, "x").is_null()) << text;
  }
}

TEST(ParseYamlTest, ReadsALastLineWithoutItsEnd) {
  EXPECT_EQ(dump_of("a: 1\nb: 'x'"), R"({"a":1,"b":"x"})");
  EXPECT_EQ(dump_of("\xef\xbb\xbf"
                    "a: 1\r\nb: x\r\n"),
            R"({"a":1,"b":"x"})");
}

TEST(ParseYamlTest, CopiesOutAliases) {
  EXPECT_EQ(dump_of("a: &x [1, {b: 2}]\nc: *x\nd: [*x]\n"),
            R"({"a":[1,{"b":2}],"c":[1,{"b":2}],"d":[[1,{"b":2}]]})");
}

struct Broken {
  const char* text;
  const char* what;
};

TEST(ParseYamlTest, SaysInWhichLineAndWhyAFileIsRefused) {
  const Broken files[] = {
      {"a: 1\na: 2\n", "x.yaml:2: key \"a\" stands twice"},
      {"a: 1\n---\nb: 2\n", "x.yaml:2: a second document"},
      {"a: 1\n...\n---\n", "x.yaml:3: a second document"},
      {"a: 1\nb: c: d\n", "x.yaml:2: not YAML: a \":\" with no key"},
      {"a: [1, 2\nb: 3\n", "x.yaml:2: not YAML: a [ is not closed"},
      {"a: {b: 2\n", "not YAML: a { is not closed"},
      {"a: 1\nb\n", "not YAML: "},
      {"a: 1\n  b: 2\n", "x.yaml:2: not YAML: "},
      {"a:\n\t- 1\n", "x.yaml:2: not YAML: "},
      {"a: 1\nb: !python/object:os.system x\n", "x.yaml:2: the tag"},
      {"a: !!int 1\n", "x.yaml:1: the tag"},
      {"!!set {a: 1}\n", "x.yaml:1: the tag"},
      {"? [a]\n: 1\n", "x.yaml:1: a key must be text"},
      {"a: &x b\n*x : 1\n", "x.yaml:2: a key must be text"},
      {"a: 1\n~: 1\n", "x.yaml:2: a key is missing"},
      {"a: &x [1, *x]\n", "x.yaml:1: an alias stands inside"},
      {"a: 1\nb: *x\n", "x.yaml:2: not YAML: an alias without an anchor"},
      {"%YAML 9.9\n---\na: 1\n", "x.yaml:1: not YAML: "},
      {"a: b\nc: \x04 d\n", "x.yaml:2: holds the control character \\x04"},
      {"a: \x7f\n", "x.yaml:1: holds the control character \\x7f"},
      {"a: \xe9\n", "x.yaml: is not UTF-8"},
      {"\xff\xfe"
       "a",
       "x.yaml: is not UTF-8"},
  };
  for (const auto& [text, what] : files) {
    expect_error(ErrorKind::kConfig, {what}, [&] { parse_yaml(text, "x.yaml"); });
  }
  expect_error(ErrorKind::kConfig, {"\\x00"}, [] { parse_yaml(std::string("a\0b", 3), "x"); });
}

TEST(ParseYamlTest, RefusesQuotesThatAreNotClosedHoweverTheFileEnds) {
  for (const std::string quote : {"\"", "'"}) {
    for (const char* rest : {"", " ", "x", "x\n", "x\n\n ", "x\nb: 3\n", "x\r\n", "x\n# z"}) {
      expect_error(ErrorKind::kConfig, {"a quote above is not closed"},
                   [&] { parse_yaml("a: " + quote + rest, "x.yaml"); });
    }
  }
}

std::string repeated(const std::string& text, size_t bytes) {
  std::string result;
  while (result.size() + text.size() <= bytes) result += text;
  return result;
}

void expect_refused(const std::string& text, std::string_view what) {
  expect_error(ErrorKind::kConfig, {what}, [&] { parse_yaml(text, "x"); });
}

TEST(ParseYamlTest, RefusesMoreBytesThanItsLimit) {
  EXPECT_EQ(parse_yaml("a: 1\n" + std::string(kMostYamlBytes - 5, '\n'), "x").dump(), R"({"a":1})");
  expect_refused(std::string(kMostYamlBytes + 1, '\n'), "larger than 1048576 bytes");
}

TEST(ParseYamlTest, RefusesDeepNestingInEveryForm) {
  expect_refused(repeated("- ", 5000), "nests deeper than 64");
  expect_refused(std::string(500, '[') + std::string(500, ']'), "nests deeper than 64");
  std::string maps;
  for (size_t depth = 0; depth < 70; ++depth) maps += std::string(depth, ' ') + "a:\n";
  expect_refused(maps, "nests deeper than 64");
  std::string chain = "a0: &a0 [1]\n";
  for (int i = 1; i < 70; ++i) chain += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  expect_refused(chain, "nests deeper than 64");
  EXPECT_EQ(dump_of(repeated("[", 64) + repeated("]", 64)), repeated("[", 64) + repeated("]", 64));
}

TEST(ParseYamlTest, RefusesAliasBombs) {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    bomb += fmt::format("{0}: &{0} [*{1},*{1},*{1},*{1},*{1},*{1},*{1},*{1}]\n", c,
                        static_cast<char>(c - 1));
  }
  expect_refused(bomb, "more than 100000 values");
  expect_refused("a: &a " + std::string(100000, 'x') + "\nb: [" + repeated("*a,", 30000) + "]",
                 "more than 100000 values");
}

TEST(ParseYamlTest, RefusesMoreValuesOrKeysThanAnyRecipeHas) {
  expect_refused("[" + repeated("1,", 210000) + "]", "more than 100000 values");
  std::string keys;
  for (int i = 0; i <= 10000; ++i) keys += fmt::format("k{}: 1\n", i);
  expect_refused(keys, "more than 10000 keys");
}

TEST(ParseYamlTest, NeverThrowsAnythingButItsErrorOnMutatedFiles) {
  const std::string seed =
      "model: &m deit_tiny\nlr: 5.0e-4\nscale: [0.08, 1]\naugment: {mixup: 0.8, on: true}\n"
      "text: |+\n  a\n\nlist:\n- 'it''s'\n- \"\\u00e9\\x41\"\n- *m\n? k\n: !!str 5\n";
  const std::string marks = "[]{}:,-?&*!|>'\"%@`#~ \n\t\\aé\xff.0e";
  int refused = 0;
  for (uint64_t round = 0; round < 5000; ++round) {
    Rng rng(stream_key(1, {round}));
    std::string text = seed;
    for (int64_t edits = 1 + rng.below(6); edits > 0; --edits) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      const char mark = marks[static_cast<size_t>(rng.below(static_cast<int64_t>(marks.size())))];
      if (rng.chance(0.4)) {
        text[at] = mark;
      } else if (rng.chance(0.5)) {
        text.insert(at, 1, mark);
      } else {
        text.erase(at, 1 + static_cast<size_t>(rng.below(8)));
      }
    }
    try {
      parse_yaml(text, "x");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kConfig);
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 4999);
}

TEST(ReadYamlFileTest, NamesTheFile) {
  const TempFolder folder;
  EXPECT_EQ(read_yaml_file(folder.write("a.yaml", "a: 1\n")).dump(), R"({"a":1})");
  const std::string broken = folder.write("b.yaml", "a: 1\na: 2\n");
  expect_error(ErrorKind::kConfig, {broken + ":2: "}, [&] { read_yaml_file(broken); });
  expect_error(ErrorKind::kIo, {"none.yaml"}, [&] { read_yaml_file(folder / "none.yaml"); });
}

}  // namespace
}  // namespace adjoin
