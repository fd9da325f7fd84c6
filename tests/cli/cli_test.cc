// The program as a user runs it: what it prints when all is well.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "adjoin/core/json.h"
#include "adjoin/cost/cost.h"
#include "adjoin/spec/catalog.h"
#include "support/expect_error.h"
#include "support/run_program.h"

namespace adjoin {
namespace {

using Words = std::vector<std::string>;

/// Standard output of a run that must end well and keep standard error empty.
std::string output_of(const Words& args) {
  const ProgramResult result = run_program(ADJOIN_BINARY, args);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

Json json_of(const Words& args) { return parse_json(output_of(args), "stdout"); }

Words keys_of(const Json& json) {
  Words keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

/// The first words of the indented lines of the help page that name a command.
Words commands_of(const std::string& help) {
  Words commands;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (line.starts_with("  ") && !first.starts_with("-") && first != "COMMAND") {
      commands.push_back(first);
    }
  }
  return commands;
}

TEST(HelpTest, ListsEveryCommandAndEachExplainsItself) {
  const Words commands = commands_of(output_of({"--help"}));
  for (const char* command : {"models", "cost", "verify"}) {
    EXPECT_NE(std::find(commands.begin(), commands.end(), command), commands.end()) << command;
  }
  for (const std::string& command : commands) {
    const std::string help = output_of({command, "--help"});
    EXPECT_TRUE(contains(help, "Usage: ")) << help;
    EXPECT_TRUE(contains(help, "--json")) << help;
  }
}

TEST(HelpTest, IsPrintedForNoCommandAtAll) {
  EXPECT_EQ(output_of({}), output_of({"--help"}));
  EXPECT_EQ(output_of({"help"}), output_of({"--help"}));
  EXPECT_EQ(output_of({"help", "cost"}), output_of({"cost", "--help"}));
}

TEST(VersionTest, NamesTheProgramAndItsParts) {
  const std::string version = output_of({"--version"});
  EXPECT_TRUE(version.starts_with("adjoin ")) << version;
  EXPECT_TRUE(isdigit(version[7])) << version;
  for (const char* part : {"LibTorch", "CUDA", "compiler"}) EXPECT_TRUE(contains(version, part));
}

TEST(ModelsCommandTest, ListsTheCatalogForPeople) {
  const std::string table = output_of({"models"});
  for (const std::string& name : catalog_names()) EXPECT_TRUE(contains(table, name + " ")) << name;
  EXPECT_TRUE(contains(table, "5,717,416"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2 + std::ssize(catalog_names()));
}

TEST(ModelsCommandTest, GivesTheCatalogAsJsonOfExactlyTheDocumentedKeys) {
  const Json json = json_of({"models", "--json"});
  EXPECT_EQ(keys_of(json), Words{"models"});
  Words names;
  for (const Json& row : json["models"]) {
    EXPECT_EQ(keys_of(row), (Words{"name", "family", "img_size", "params", "macs"}));
    names.push_back(row["name"]);
    const ModelSpec spec = catalog_spec(names.back());
    const Cost counted = cost(spec);
    EXPECT_EQ(row["family"], family_name(spec));
    EXPECT_EQ(row["img_size"], spec.img_size);
    EXPECT_EQ(row["params"], counted.params);
    EXPECT_EQ(row["macs"], counted.macs.total());
  }
  EXPECT_EQ(names, catalog_names());
}

TEST(ModelsCommandTest, PrintsOneSpecInFull) {
  for (const std::string& name : catalog_names()) {
    EXPECT_EQ(spec_from_json(json_of({"models", name})), catalog_spec(name));
  }
}

TEST(ModelsCommandTest, PrintsASpecWithItsChanges) {
  const Json json = json_of({"models", "vit_mini_28", "--set", "model.depth=2", "--set",
                             "model.blocks.1.heads=3", "--json"});
  EXPECT_EQ(json["blocks"].size(), 2U);
  EXPECT_EQ(json["blocks"][1]["heads"], 3);
}

TEST(CostCommandTest, AcceptsTheSpecThatModelsPrintsAndCountsTheSame) {
  const std::string path =
      testing::TempDir() + "adjoin_cli_spec_" + std::to_string(getpid()) + ".json";
  for (const char* name : {"deit_tiny_distilled_patch16_224", "t2t_mini_32", "swin_mini_28"}) {
    std::ofstream(path) << output_of({"models", name});
    EXPECT_EQ(json_of({"cost", path, "--json"}), json_of({"cost", name, "--json"})) << name;
  }
  std::filesystem::remove(path);
}

TEST(CostCommandTest, GivesJsonOfExactlyTheDocumentedKeys) {
  const Json json = json_of({"cost", "deit_tiny_patch16_224", "--json"});
  EXPECT_EQ(keys_of(json),
            (Words{"model", "params", "params_trainable", "macs", "macs_without_attention",
                   "weight_bytes", "activation_bytes", "blocks"}));
  EXPECT_EQ(json["model"], "deit_tiny_patch16_224");
  EXPECT_EQ(json["params"], 5717416);
  ASSERT_EQ(json["blocks"].size(), 12U);
  for (const Json& block : json["blocks"]) {
    EXPECT_EQ(keys_of(block), (Words{"name", "heads", "hidden", "params", "macs"}));
  }
}

TEST(CostCommandTest, PrintsATableForPeople) {
  const std::string text = output_of({"cost", "t2t_vit_14"});
  for (const char* part : {"t2t_vit_14", "21,545,550", "79,744 of them fixed", "blocks.13"}) {
    EXPECT_TRUE(contains(text, part)) << part << " in:\n" << text;
  }
}

TEST(CostCommandTest, FollowsTheChangesThatAreSet) {
  const Json plain = json_of({"cost", "vit_mini_28", "--json"});
  const Json changed = json_of({"cost", "vit_mini_28", "--set", "model.num_classes=11", "--json"});
  EXPECT_EQ(changed["params"].get<int64_t>(), plain["params"].get<int64_t>() + 65);
  EXPECT_EQ(changed["macs"].get<int64_t>(), plain["macs"].get<int64_t>() + 64);
}

TEST(CostCommandTest, TakesItsArgumentsInAnyOrder) {
  const Words usual = {"cost", "vit_mini_28", "--set", "model.depth=2", "--json"};
  const Words turned = {"cost", "--json", "--set=model.depth=2", "vit_mini_28"};
  EXPECT_EQ(output_of(usual), output_of(turned));
}

TEST(CostCommandTest, IgnoresTheTagOfAName) {
  EXPECT_EQ(json_of({"cost", "deit_tiny_patch16_224.fb_in1k", "--json"})["params"], 5717416);
}

TEST(FlagTest, IsTheSameWithLowLinesAndWithDashes) {
  // No flag of these commands has two words, so what shows it is the flag as the program read it.
  const ProgramResult low = run_program(ADJOIN_BINARY, {"cost", "vit_mini_28", "--data_dir_x=a_b"});
  const ProgramResult dash =
      run_program(ADJOIN_BINARY, {"cost", "vit_mini_28", "--data-dir-x=a_b"});
  EXPECT_EQ(low.err, dash.err);
  EXPECT_TRUE(contains(low.err, "--data-dir-x")) << low.err;
}

TEST(FlagTest, KeepsLowLinesInItsValue) {
  for (const Words& set : {Words{"--set=model.name=a_b"}, Words{"--set", "model.name=a_b"}}) {
    Words args = {"cost", "vit_mini_28", "--json"};
    args.insert(args.end(), set.begin(), set.end());
    EXPECT_EQ(json_of(args)["model"], "a_b");
  }
}

}  // namespace
}  // namespace adjoin
