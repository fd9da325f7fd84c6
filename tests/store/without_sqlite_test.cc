// What uses a study, linked without SQLite: it says what is missing, and the rest is there.
#include <gtest/gtest.h>

#include <fstream>

#include "adjoin/report/run_view.h"
#include "adjoin/report/search_view.h"
#include "adjoin/search/bayes_run.h"
#include "search/search_support.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin {
namespace {

TEST(WithoutSqliteTest, ASearchByTrialsSaysWhatToInstall) {
  const TempFolder folder;
  expect_error(ErrorKind::kMissingPart, {"libsqlite3-dev"},
               [&] { search::BayesRun(search::config_of("vit_mini_28"), folder.path()); });
  std::ofstream(folder / "study.db") << "x";
  report::RunView run;
  run.verb = "search";
  run.folder = folder.path();
  std::vector<std::string> problems;
  report::read_search(run, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(contains(problems[0], "libsqlite3-dev")) << problems[0];
}

}  // namespace
}  // namespace adjoin
