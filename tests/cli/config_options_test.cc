#include "adjoin/cli/config_options.h"

#include <gtest/gtest.h>

#include "adjoin/cli/arguments.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin::cli {

enum class Device { kCpu, kCuda };

}  // namespace adjoin::cli

namespace adjoin {

template <>
inline constexpr auto kEnumNames<cli::Device> = std::to_array<EnumName<cli::Device>>(
    {{"cpu", cli::Device::kCpu}, {"cuda", cli::Device::kCuda}});

}  // namespace adjoin

namespace adjoin::cli {

struct Job {
  std::string data;
  std::string model = "vit";
  int64_t batch_size = 64;
  double weight_decay = 0.05;
  double shift = 0;
  Device device = Device::kCpu;
  bool ema = false;
  bool hflip = true;
  std::vector<double> scale = {0.08, 1};
  std::vector<std::string> tags;

  bool operator==(const Job&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, Job& job) {
  visit("data", job.data, Range{}, "images to learn from");
  visit("model", job.model, Range{}, "a name of the catalog");
  visit("batch_size", job.batch_size, Range{1, 65536}, "images of a step");
  visit("weight_decay", job.weight_decay, Range{0}, "pull of weights to zero");
  visit("shift", job.shift);
  visit("device", job.device, Range{}, "where to compute");
  visit("ema", job.ema, Range{}, "average the weights");
  visit("hflip", job.hflip, Range{},
        "mirror half of the images, which is what nearly every recipe for photographs does, but "
        "none for digits and letters");
  visit("scale", job.scale, Range{0, 1}, "share of the image a crop takes");
  visit("tags", job.tags);
}

namespace {

class ConfigFlagsTest : public testing::Test {
 protected:
  ConfigFlagsTest()
      : app_("Trains.", "train"),
        flags_(app_, Job{},
               {.aliases = {{"data", "data-dir", "data-path"},
                            {"batch_size", "b"},
                            {"ema", "model-ema"}},
                .headings = {{"batch_size", "Optimizer"}, {"scale", "Augmentation"}}}) {}

  Job resolve(std::vector<std::string> args) {
    EXPECT_TRUE(parse(app_, args));
    return flags_.resolve(Job{});
  }

  void expect_refused(const std::vector<std::string>& args,
                      std::initializer_list<std::string_view> parts) {
    try {
      resolve(args);
    } catch (const Error& e) {
      EXPECT_EQ(exit_code(e.kind()), 2);
      for (const std::string_view part : parts) EXPECT_TRUE(contains(e.what(), part)) << e.what();
      return;
    }
    ADD_FAILURE() << "no error about " << *parts.begin();
  }

  TempFolder folder_;
  CLI::App app_;
  ConfigFlags flags_;
};

TEST_F(ConfigFlagsTest, KeepTheDefaultsWhenNothingIsGiven) {
  EXPECT_EQ(resolve({}), Job{});
  EXPECT_FALSE(flags_.is_given("batch_size"));
}

TEST_F(ConfigFlagsTest, SetEveryKindOfField) {
  const Job job =
      resolve({"--data", "folder:/a b", "--batch-size=8", "--weight-decay", "1e-3", "--device",
               "cuda", "--ema", "--no-hflip", "--scale", "0.2,0.9", "--tags=a,b"});
  EXPECT_EQ(job.data, "folder:/a b");
  EXPECT_EQ(job.batch_size, 8);
  EXPECT_EQ(job.weight_decay, 1e-3);
  EXPECT_EQ(job.device, Device::kCuda);
  EXPECT_TRUE(job.ema);
  EXPECT_FALSE(job.hflip);
  EXPECT_EQ(job.scale, (std::vector<double>{0.2, 0.9}));
  EXPECT_EQ(job.tags, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(job.model, "vit");
  EXPECT_TRUE(flags_.is_given("ema"));
  EXPECT_FALSE(flags_.is_given("model"));
}

TEST_F(ConfigFlagsTest, TakeNegativeNumbersInEitherForm) {
  EXPECT_EQ(resolve({"--shift", "-1.5"}).shift, -1.5);
}

TEST_F(ConfigFlagsTest, TakeNegativeNumbersAfterAnEqualsSign) {
  EXPECT_EQ(resolve({"--shift=-1e-3"}).shift, -1e-3);
}

TEST_F(ConfigFlagsTest, KeepListsInBracketsWhole) {
  EXPECT_EQ(resolve({"--scale", "[0.5, 1]", "--data", "[a,b]"}).scale,
            (std::vector<double>{0.5, 1}));
  EXPECT_EQ(flags_.resolve(Job{}).data, "[a,b]");
}

TEST_F(ConfigFlagsTest, LetTheLastOfARepeatedFlagWin) {
  const Job job =
      resolve({"--shift", "1", "--no-hflip", "--ema", "--shift", "2", "--hflip", "--no-ema"});
  EXPECT_EQ(job.shift, 2);
  EXPECT_TRUE(job.hflip);
  EXPECT_FALSE(job.ema);
}

TEST_F(ConfigFlagsTest, TakeAValueForABooleanAfterAnEqualsSign) {
  EXPECT_FALSE(resolve({"--hflip=off"}).hflip);
}

TEST_F(ConfigFlagsTest, KnowAliasesAsFlags) {
  EXPECT_EQ(resolve({"--data-dir", "a", "-b", "7", "--model-ema"}).data, "a");
  EXPECT_EQ(flags_.resolve(Job{}).batch_size, 7);
  EXPECT_TRUE(flags_.resolve(Job{}).ema);
}

TEST_F(ConfigFlagsTest, KnowAliasesAsKeysOfRecipesAndOfSet) {
  const std::string recipe = folder_.write("r.yaml", "data-path: x\nmodel_ema: true\n");
  const Job job = resolve({"--config", recipe, "--set", "b=3"});
  EXPECT_EQ(job.data, "x");
  EXPECT_TRUE(job.ema);
  EXPECT_EQ(job.batch_size, 3);
  EXPECT_TRUE(flags_.is_given("data"));
}

TEST_F(ConfigFlagsTest, WinOverSetsAndSetsOverRecipesWhateverTheirOrder) {
  const std::string first =
      folder_.write("1.yaml", "shift: 1\nbatch_size: 1\nmodel: one\nweight_decay: 1\n");
  const std::string second = folder_.write("2.yaml", "shift: 2\nbatch-size: 2\nmodel: two\n");
  const Job job = resolve({"--shift", "4", "--set", "batch_size=3", "--set", "shift=3", "--config",
                           first, "--config=" + second});
  EXPECT_EQ(job.weight_decay, 1);
  EXPECT_EQ(job.model, "two");
  EXPECT_EQ(job.batch_size, 3);
  EXPECT_EQ(job.shift, 4);
}

TEST_F(ConfigFlagsTest, LeaveKeysOfTheModelToTheModel) {
  const Job job =
      resolve({"--set", "model.img_size=384", "--set", "model=swin", "--set", "model.depth=3"});
  EXPECT_EQ(job.model, "swin");
  EXPECT_EQ(flags_.model_sets(), (std::vector<std::string>{"model.img_size=384", "model.depth=3"}));
  EXPECT_EQ(parse_overrides(flags_.model_sets()).at(1).key, "depth");
}

TEST_F(ConfigFlagsTest, TakeAnEmptyTextBySet) {
  EXPECT_EQ(resolve({"--set", "model=", "--set", "scale="}).model, "");
}

TEST_F(ConfigFlagsTest, NameTheFlagThatIsWrong) {
  expect_refused({"--weight-decay", "much"}, {"--weight-decay: is \"much\", must be a number"});
}

TEST_F(ConfigFlagsTest, NameTheFlagThatIsOutOfRange) {
  expect_refused({"--batch-size", "0"}, {"--batch-size: is 0, must be 1 to 65536"});
}

TEST_F(ConfigFlagsTest, ListTheLegalWords) {
  expect_refused({"--device", "tpu"}, {"--device: unknown value \"tpu\"; legal: cpu, cuda"});
}

TEST_F(ConfigFlagsTest, GuessWhatAnUnknownFlagMeant) {
  expect_refused({"--wieght-decay", "1"}, {"--wieght-decay", "did you mean --weight-decay?"});
}

TEST_F(ConfigFlagsTest, NoticeAFlagWhereAValueShouldBe) {
  expect_refused({"--data", "--ema"}, {"--data: its value is missing; the flag --ema follows"});
}

TEST_F(ConfigFlagsTest, NoticeAValueThatIsMissingAtTheEnd) {
  expect_refused({"--data"}, {"--data"});
}

TEST_F(ConfigFlagsTest, RefuseAValueThatIsNoBoolean) {
  expect_refused({"--ema=maybe"}, {"ema", "maybe"});
}

TEST_F(ConfigFlagsTest, RefuseUnknownKeysOfSet) {
  expect_refused({"--set", "batchsize=1"}, {"--set: unknown key \"batchsize\"", "batch_size"});
}

TEST_F(ConfigFlagsTest, RefuseASetWithoutAValue) {
  expect_refused({"--set", "shift"}, {"--set: \"shift\" must be KEY=VALUE"});
}

TEST_F(ConfigFlagsTest, NameTheRecipeThatIsWrong) {
  const std::string recipe = folder_.write("r.yaml", "shift: 1\nbatch-sise: 2\n");
  expect_refused({"--config", recipe}, {"r.yaml: unknown key \"batch-sise\"; did you mean "});
}

TEST_F(ConfigFlagsTest, RefuseTwoNamesOfAFieldInOneRecipe) {
  const std::string recipe = folder_.write("r.yaml", "data: a\ndata_dir: b\n");
  expect_refused({"--config", recipe}, {"r.yaml: keys \"data_dir\" and data mean the same"});
}

TEST_F(ConfigFlagsTest, ShowEveryFieldWithItsDefaultOnTheHelpPage) {
  const std::string help = app_.help();
  for (const char* part :
       {"\n  --data TEXT                   images to learn from (also --data-dir, --data-path)\n",
        "\n  -b,--batch-size N             images of a step (default 64)\n",
        "\n  --shift X                     (default 0)\n",
        "\n  --device cpu|cuda             where to compute (default cpu)\n",
        "\n  --[no-]ema                    average the weights (default off; also --model-ema)\n",
        "\n  --scale X,..                  share of the image a crop takes (default 0.08,1)\n",
        "\n\nConfig:\n  --data", "\nOptimizer:\n  -b,--batch", "\nAugmentation:\n  --scale",
        "\n  --config FILE", "\n  --set KEY=VALUE"}) {
    EXPECT_TRUE(contains(help, part)) << part << "\nis not in\n" << help;
  }
}

TEST_F(ConfigFlagsTest, WrapTheLinesOfTheHelpPage) {
  std::istringstream lines(app_.help());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_FALSE(contains(app_.help(), "\n\n\n"));
}

TEST(ParseOverridesTest, RefusesKeysThatAreNotTheModels) {
  expect_error(ErrorKind::kUsage, {"--set: unknown key lr; keys start with model."}, [] {
    parse_overrides({"model.depth=3", "lr=1"});
  });
}

}  // namespace
}  // namespace adjoin::cli
