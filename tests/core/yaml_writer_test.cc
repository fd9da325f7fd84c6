// What to_yaml writes is read back to the same value, by us and by PyYAML.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "adjoin/core/rng.h"
#include "adjoin/core/text.h"
#include "adjoin/core/yaml.h"
#include "support/expect_error.h"
#include "support/run_program.h"
#include "support/temp_folder.h"

namespace adjoin {
namespace {

TEST(ToYamlTest, WritesAConfigAsAPersonWould) {
  const Json json = Json::parse(R"({"model":"deit_tiny_patch16_224","lr":0.0005,"eps":1e-8,
      "epochs":300,"ema":true,"warmup":5.0,"scale":[0.08,1.0],"teacher":"","data":"/data/imagenet",
      "answer":"yes","number":"12","none":null,"empty":[],"blocks":[{"heads":3},[1,[2]]],
      "nested":{"a":{"b":"c: d"}}})");
  EXPECT_EQ(to_yaml(json),
            "model: deit_tiny_patch16_224\nlr: 0.0005\neps: 1.0e-08\nepochs: 300\nema: true\n"
            "warmup: 5.0\nscale: [0.08, 1.0]\nteacher: \"\"\ndata: /data/imagenet\n"
            "answer: \"yes\"\nnumber: \"12\"\nnone: null\nempty: []\n"
            "blocks:\n  -\n    heads: 3\n  -\n    - 1\n    - [2]\n"
            "nested:\n  a:\n    b: \"c: d\"\n");
}

TEST(ToYamlTest, BreaksListsThatAreTooLongForALine) {
  const std::string text = to_yaml(Json{{"a", std::vector<int>(100, 7)}});
  EXPECT_TRUE(text.starts_with("a:\n  - 7\n  - 7\n")) << text;
}

TEST(ToYamlTest, RefusesWhatYamlCannotHold) {
  expect_error(ErrorKind::kConfig, {"not UTF-8"}, [] { to_yaml(Json("\xff")); });
  expect_error(ErrorKind::kConfig, {"longer than 500"}, [] {
    to_yaml(Json{{std::string(501, 'k'), 1}});
  });
}

/// Same type and, for numbers, same bits; what `==` calls equal can differ in both.
bool is_same(const Json& a, const Json& b) {
  if (a.is_number_float() != b.is_number_float()) return false;
  if (a.is_number_float()) {
    if (std::isnan(a.get<double>())) return std::isnan(b.get<double>());
    return std::bit_cast<uint64_t>(a.get<double>()) == std::bit_cast<uint64_t>(b.get<double>());
  }
  if (!a.is_structured()) return a == b;
  if (a.is_array() != b.is_array() || a.size() != b.size()) return false;
  auto other = b.items().begin();
  for (const auto& [key, value] : a.items()) {
    if (key != other.key() || !is_same(value, other.value())) return false;
    ++other;
  }
  return true;
}

class RandomJson {
 public:
  explicit RandomJson(uint64_t seed) : rng_(stream_key(2, {seed})) {}

  Json value(int depth) {
    const int64_t kind = rng_.below(depth > 0 ? 9 : 6);
    if (kind == 0) return nullptr;
    if (kind == 1) return rng_.chance(0.5);
    if (kind == 2) return static_cast<int64_t>(rng_.next() >> rng_.below(64));
    if (kind == 3) return number();
    if (kind <= 5) return text();
    Json result = kind == 6 ? Json::object() : Json::array();
    for (int64_t count = rng_.below(6); count > 0; --count) {
      if (kind == 6) {
        result[text()] = value(depth - 1);
      } else {
        result.push_back(value(depth - 1));
      }
    }
    return result;
  }

 private:
  double number() {
    if (rng_.chance(0.3)) return static_cast<double>(rng_.below(2000) - 1000);
    if (rng_.chance(0.1)) return -0.0;
    const double any = std::bit_cast<double>(rng_.next());
    return std::isfinite(any) && rng_.chance(0.5) ? any : rng_.uniform(-1, 1);
  }

  std::string text() {
    constexpr std::string_view kPieces[] = {"a",
                                            "Z",
                                            "0",
                                            "1",
                                            "9",
                                            ".",
                                            "-",
                                            "+",
                                            "e",
                                            "E",
                                            "_",
                                            " ",
                                            "  ",
                                            ":",
                                            ": ",
                                            "#",
                                            " #",
                                            ",",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            "&",
                                            "*",
                                            "!",
                                            "|",
                                            ">",
                                            "'",
                                            "\"",
                                            "%",
                                            "@",
                                            "`",
                                            "?",
                                            "~",
                                            "=",
                                            "\\",
                                            "/",
                                            "\n",
                                            "\r",
                                            "\t",
                                            "\x01",
                                            "\x7f",
                                            "\xc2\x85",
                                            "\xe2\x80\xa8",
                                            "\xef\xbb\xbf",
                                            "\xef\xbf\xbf",
                                            "\xf0\x9f\xbf\xbf",
                                            "\xf0\x9f\x98\x80",
                                            "é",
                                            "中",
                                            "true",
                                            "null",
                                            "yes",
                                            "on",
                                            "inf",
                                            "nan",
                                            "0x",
                                            "0o",
                                            "<<",
                                            "---",
                                            "...",
                                            "- ",
                                            "? "};
    constexpr auto kCount = static_cast<int64_t>(std::size(kPieces));
    std::string result;
    for (int64_t pieces = rng_.below(5); pieces > 0; --pieces) {
      result += kPieces[static_cast<size_t>(rng_.below(kCount))];
    }
    return result;
  }

  Rng rng_;
};

TEST(ToYamlTest, IsReadBackToTheSameValue) {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const Json json = RandomJson(seed).value(4);
    const std::string yaml = to_yaml(json);
    EXPECT_TRUE(is_plain_text(yaml) || yaml.find('\n') != std::string::npos);
    Json back;
    ASSERT_NO_THROW(back = parse_yaml(yaml, "x")) << yaml;
    ASSERT_TRUE(is_same(json, back)) << json.dump() << '\n' << yaml << '\n' << back.dump();
  }
}

TEST(ToYamlTest, IsReadBackWhereNumbersAreNotFinite) {
  using Limits = std::numeric_limits<double>;
  const Json json = {Limits::infinity(), -Limits::infinity(), std::nan(""), Limits::max(),
                     Limits::denorm_min()};
  EXPECT_TRUE(is_same(json, parse_yaml(to_yaml(json), "x"))) << to_yaml(json);
}

TEST(ToYamlTest, IsReadTheSameWayByPyYaml) {
  const char* const python = "/usr/bin/python3";
  if (access(python, X_OK) != 0 || run_program(python, {"-c", "import yaml"}).exit_code != 0) {
    GTEST_SKIP() << "no python3-yaml (tools/install-deps --test)";
  }
  const TempFolder folder;
  Json all = Json::array();
  for (uint64_t seed = 0; seed < 500; ++seed) all.push_back(RandomJson(seed).value(3));
  folder.write("a.yaml", to_yaml(all));
  folder.write("a.json", all.dump());
  const ProgramResult result =
      run_program(python, {"-c",
                           "import json, sys, yaml\n"
                           "a = yaml.safe_load(open(sys.argv[1] + '/a.yaml', encoding='utf-8'))\n"
                           "b = json.load(open(sys.argv[1] + '/a.json', encoding='utf-8'))\n"
                           "assert len(a) == len(b) == 500\n"
                           "for x, y in zip(a, b):\n"
                           "  assert repr(x) == repr(y), (x, y)\n",
                           folder.path()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace adjoin
