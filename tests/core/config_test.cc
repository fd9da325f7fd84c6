#include "adjoin/core/config.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace adjoin {

enum class Sched { kCosine, kStep };

template <>
inline constexpr auto kEnumNames<Sched> =
    std::to_array<EnumName<Sched>>({{"cosine", Sched::kCosine}, {"step", Sched::kStep}});

struct Crop {
  std::vector<double> scale = {0.08, 1};
  bool hflip = true;

  bool operator==(const Crop&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, Crop& crop) {
  visit("scale", crop.scale, Range{0, 1}, "share of the image a crop takes, from and to");
  visit("hflip", crop.hflip, Range{}, "mirror half of the images");
}

struct Recipe {
  std::string model;
  int64_t epochs = 300;
  double weight_decay = 0.05;
  Sched sched = Sched::kCosine;
  std::vector<int64_t> steps;
  std::vector<std::string> tags;
  std::vector<Sched> scheds;
  Crop crop;

  bool operator==(const Recipe&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, Recipe& recipe) {
  visit("model", recipe.model, Range{}, "a name of the catalog");
  visit("epochs", recipe.epochs, Range{1, 10000}, "passes over the images");
  visit("weight_decay", recipe.weight_decay, Range{0}, "pull of weights to zero");
  visit("sched", recipe.sched);
  visit("steps", recipe.steps);
  visit("tags", recipe.tags);
  visit("scheds", recipe.scheds);
  fields(visit, recipe.crop);
}

namespace {

Recipe merged(const std::string& yaml) {
  Recipe recipe;
  merge_json(parse_yaml(yaml, "r.yaml"), recipe, "r.yaml");
  return recipe;
}

Recipe with(const std::string& key, const std::string& text) {
  Recipe recipe;
  set_from_text(recipe, key, text);
  return recipe;
}

TEST(MergeJsonTest, SetsTheFieldsThatAreNamedAndNoOthers) {
  Recipe expected;
  expected.weight_decay = 1e-3;
  expected.sched = Sched::kStep;
  expected.crop.scale = {0.2, 1};
  expected.crop.hflip = false;
  EXPECT_EQ(merged("hflip: false\nweight_decay: 1e-3\nscale: [0.2, 1]\nsched: step\n"), expected);
}

TEST(MergeJsonTest, TakesDashesForUnderscoresAndIntegersForNumbers) {
  EXPECT_EQ(merged("weight-decay: 1\n").weight_decay, 1.0);
}

TEST(MergeJsonTest, LetsLaterFilesWin) {
  Recipe recipe = merged("epochs: 5\nmodel: a\n");
  merge_json(parse_yaml("epochs: 7\n", "s.yaml"), recipe, "s.yaml");
  EXPECT_EQ(recipe.epochs, 7);
  EXPECT_EQ(recipe.model, "a");
}

TEST(MergeJsonTest, TakesAnEmptyFile) { EXPECT_EQ(merged("# nothing\n"), Recipe{}); }

TEST(MergeJsonTest, NamesUnknownKeysTheirFileAndWhatWasLikelyMeant) {
  expect_error(ErrorKind::kConfig,
               {"r.yaml: unknown key \"wieght-decay\"; did you mean weight_decay?"},
               [] { merged("wieght-decay: 1\n"); });
  expect_error(ErrorKind::kConfig, {"r.yaml: unknown key \"crop\""}, [] { merged("crop: {}\n"); });
}

TEST(MergeJsonTest, RefusesOneKeyInTwoSpellings) {
  expect_error(ErrorKind::kConfig, {"r.yaml: key weight_decay stands twice"},
               [] { merged("weight-decay: 1\nweight_decay: 2\n"); });
}

TEST(MergeJsonTest, RefusesWrongValues) {
  const std::pair<const char*, const char*> files[] = {
      {"epochs: 1.5", "r.yaml: epochs: is 1.5, must be an integer"},
      {"epochs: 0", "r.yaml: epochs: is 0, must be 1 to 10000"},
      {"weight_decay: -1", "r.yaml: weight_decay: is -1, must be at least 0"},
      {"weight_decay: .nan", "r.yaml: weight_decay: "},
      {"hflip: yes", "r.yaml: hflip: is \"yes\", must be true or false"},
      {"sched: linear", "r.yaml: sched: unknown value \"linear\"; legal: cosine, step"},
      {"scale: 0.5", "r.yaml: scale: is 0.5, must be a list"},
      {"scale: [0.5, 2]", "r.yaml: scale.1: is 2, must be 0 to 1"},
      {"model: 5", "r.yaml: model: is 5, must be a string"},
      {"model:", "r.yaml: model: is null, must be a string"},
      {"- 1", "r.yaml: is a list, must be"},
      {"just text", "r.yaml: is \"just text\", must be"},
  };
  for (const auto& [text, what] : files) {
    expect_error(ErrorKind::kConfig, {what}, [&] { merged(text); });
  }
}

TEST(MergeJsonTest, LeavesTheConfigAsItWasWhenItRefuses) {
  Recipe recipe;
  expect_error(ErrorKind::kConfig, {"weight_decay"}, [&] {
    merge_json(Json{{"epochs", 5}, {"weight_decay", -1}}, recipe, "r");
  });
  EXPECT_EQ(recipe, Recipe{});
}

TEST(SetFromTextTest, ReadsEveryKindOfField) {
  EXPECT_EQ(with("model", "a b,c").model, "a b,c");
  EXPECT_EQ(with("model", "5").model, "5");
  EXPECT_EQ(with("model", "").model, "");
  EXPECT_EQ(with("epochs", "12").epochs, 12);
  EXPECT_EQ(with("weight-decay", "1e-3").weight_decay, 1e-3);
  EXPECT_EQ(with("weight_decay", "2").weight_decay, 2);
  EXPECT_EQ(with("sched", "step").sched, Sched::kStep);
  EXPECT_EQ(with("steps", "3,-1").steps, (std::vector<int64_t>{3, -1}));
  EXPECT_EQ(with("scale", "[0.5, 1]").crop.scale, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(with("scale", "").crop.scale, std::vector<double>{});
  EXPECT_EQ(with("tags", "a, b c").tags, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(with("scheds", "step,cosine").scheds,
            (std::vector<Sched>{Sched::kStep, Sched::kCosine}));
}

TEST(SetFromTextTest, KnowsTheWordsForTrueAndFalse) {
  for (const char* text : {"true", "on", "yes", "1"}) {
    Recipe recipe;
    recipe.crop.hflip = false;
    set_from_text(recipe, "hflip", text);
    EXPECT_TRUE(recipe.crop.hflip) << text;
  }
  for (const char* text : {"false", "off", "no", "0"}) EXPECT_FALSE(with("hflip", text).crop.hflip);
}

TEST(SetFromTextTest, NamesTheFlagInItsErrors) {
  const std::tuple<const char*, const char*, const char*> wrong[] = {
      {"weight_decay", "much", "--weight-decay: is \"much\", must be a number"},
      {"weight_decay", "", "--weight-decay: is \"\", must be a number"},
      {"weight_decay", "-1", "--weight-decay: is -1, must be at least 0"},
      {"weight_decay", ".nan", "--weight-decay: "},
      {"epochs", "1e3", "--epochs: is \"1e3\", must be a whole number"},
      {"epochs", "99999999999999999999", "--epochs: the number"},
      {"epochs", "9223372036854775808", "--epochs: "},
      {"sched", "x", "--sched: unknown value \"x\"; legal: cosine, step"},
      {"hflip", "maybe", "--hflip: is \"maybe\", must be true or false"},
      {"scale", "0.5,,1", "--scale: \"0.5,,1\" has an empty item"},
      {"scale", "0.5,1,", "--scale: \"0.5,1,\" has an empty item"},
      {"scale", "a", "--scale: is \"a\", must be a number"},
      {"epoch", "1", "unknown flag --epoch; did you mean --epochs?"},
  };
  for (const auto& [key, text, what] : wrong) {
    expect_error(ErrorKind::kConfig, {what}, [&, k = key, t = text] { with(k, t); });
  }
}

TEST(DescribeFieldsTest, TellsNamesTypesDefaultsRangesAndDocs) {
  const std::vector<FieldInfo> infos = describe_fields(Recipe{});
  std::string table;
  for (const FieldInfo& info : infos) {
    table += fmt::format("{} ({}) = {}; {}; {}\n", info.name, info.type_text(), info.value,
                         range_text(info.range), info.doc);
  }
  EXPECT_EQ(
      table,
      "model (text) = ; ; a name of the catalog\n"
      "epochs (whole number) = 300; 1 to 10000; passes over the images\n"
      "weight_decay (number) = 0.05; at least 0; pull of weights to zero\n"
      "sched (cosine|step) = cosine; ; \n"
      "steps (list of whole numbers) = ; ; \n"
      "tags (list of texts) = ; ; \n"
      "scheds (list of cosine|step) = ; ; \n"
      "scale (list of numbers) = 0.08,1; 0 to 1; share of the image a crop takes, from and to\n"
      "hflip (flag) = true; ; mirror half of the images\n");
}

TEST(DescribeFieldsTest, GivesDefaultsThatTheirFlagsReadBack) {
  Recipe recipe = merged("scale: [0.1, 0.7]\nweight_decay: 1e-8\nsteps: [1, 2]\nsched: step\n");
  Recipe copy;
  for (const FieldInfo& info : describe_fields(recipe)) set_from_text(copy, info.name, info.value);
  EXPECT_EQ(copy, recipe);
}

TEST(ConfigYamlTest, ListsEveryFieldInOrderAndIsReadBack) {
  const Recipe recipe = merged("model: vit\nscale: [0.1, 1]\n");
  EXPECT_EQ(config_yaml(recipe),
            "model: vit\nepochs: 300\nweight_decay: 0.05\nsched: cosine\nsteps: []\ntags: []\n"
            "scheds: []\nscale: [0.1, 1.0]\nhflip: true\n");
  EXPECT_EQ(merged(config_yaml(recipe)), recipe);
}

TEST(RangeTextTest, SaysOnlyTheEndsThereAre) {
  EXPECT_EQ(range_text({}), "");
  EXPECT_EQ(range_text({0.5}), "at least 0.5");
  EXPECT_EQ(range_text({-std::numeric_limits<double>::infinity(), 3}), "at most 3");
}

}  // namespace
}  // namespace adjoin
