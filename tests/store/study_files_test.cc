// Files that are not studies, or no longer.

#include "store/store_support.h"

namespace adjoin::store {
namespace {

class StudyFilesTest : public testing::Test {
 protected:
  /// The file must be refused, for writing and for reading, and stay as it is.
  void expect_refused(std::initializer_list<std::string_view> parts) const {
    const std::string before = read_file(path_);
    expect_error(ErrorKind::kData, {path_}, [&] { open_study(path_).trials(); });
    expect_error(ErrorKind::kData, parts, [&] { Study::read(path_).trials(); });
    EXPECT_TRUE(read_file(path_) == before);
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "study.db";
};

TEST_F(StudyFilesTest, GarbageIsRefused) {
  for (const std::string& text :
       {std::string("x"), std::string("SQLite format 3"), std::string("SQLite format 3\0", 16),
        std::string(100, '\0'), std::string(8192, 'g'), std::string("trial,reward\n0,1\n"),
        std::string("SQLite format 3\0", 16) + std::string(8000, '\xff')}) {
    folder_.write("study.db", text);
    expect_refused({path_, "is not a study"});
  }
}

TEST_F(StudyFilesTest, WhatIsNoFileIsRefused) {
  expect_error(ErrorKind::kIo, {"is a folder"}, [&] { open_study(folder_.path()); });
  expect_error(ErrorKind::kIo, {"/dev/null", "regular"}, [&] { open_study("/dev/null"); });
  expect_error(ErrorKind::kIo, {"empty"}, [&] { open_study(""); });
  expect_error(ErrorKind::kIo, {"No such file"}, [&] { open_study(folder_ / "no/study.db"); });
  expect_error(ErrorKind::kIo, {path_, "No such file"}, [&] { Study::read(path_); });
  EXPECT_NE(access(path_.c_str(), F_OK), 0) << "reading made a file";
}

TEST_F(StudyFilesTest, AFileThatIsGoneOrAnotherIsSaidAtTheNextChange) {
  make_study(path_);
  Study study = open_study(path_);
  const std::string elsewhere = folder_ / "elsewhere.db";
  ASSERT_EQ(std::rename(path_.c_str(), elsewhere.c_str()), 0);
  const auto expect_gone = [&] {
    expect_error(ErrorKind::kIo, {path_, "deleted, moved or replaced"}, [&] { study.claim(); });
    expect_error(ErrorKind::kIo, {path_, "deleted, moved or replaced"},
                 [&] { study.set_fact("best", 1); });
  };
  expect_gone();
  folder_.write("study.db", "another");
  expect_gone();
  ASSERT_EQ(std::rename(elsewhere.c_str(), path_.c_str()), 0);
  EXPECT_TRUE(study.claim());  // it is back
}

TEST_F(StudyFilesTest, AnEmptyFileBeginsAStudy) {
  folder_.write("study.db", "");
  expect_error(ErrorKind::kData, {path_, "not a study"}, [&] { Study::read(path_); });
  EXPECT_TRUE(open_study(path_).add(0, proposals(2)));
  EXPECT_EQ(Study::read(path_).trials().size(), 2U);
}

TEST_F(StudyFilesTest, ATruncatedStudyIsRefused) {
  make_study(path_);
  const std::string whole = read_file(path_);
  for (const size_t size : {size_t{1}, size_t{15}, size_t{16}, size_t{99}, size_t{100}, size_t{511},
                            size_t{4096}, size_t{4097}, whole.size() / 2, whole.size() - 4096,
                            whole.size() - 4095, whole.size() - 1}) {
    SCOPED_TRACE(size);
    folder_.write("study.db", whole.substr(0, size));
    expect_refused({path_});
  }
}

TEST_F(StudyFilesTest, AFlippedByteIsRefusedOrHarmless) {
  make_study(path_);
  const std::string whole = read_file(path_);
  size_t refused = 0;
  for (size_t place = 0; place < whole.size(); place += place < 128 ? 1 : 149) {
    std::string broken = whole;
    broken[place] = static_cast<char>(broken[place] ^ (place % 2 == 0 ? 0xff : 0x01));
    folder_.write("study.db", broken);
    try {
      const Study study = place % 3 == 0 ? Study::read(path_) : open_study(path_);
      study.trials();
      study.about();
    } catch (const Error& e) {
      ++refused;
      const bool is_about = e.kind() == ErrorKind::kUsage && contains(e.what(), "holds a study");
      EXPECT_TRUE(e.kind() == ErrorKind::kData || is_about) << place << ": " << e.what();
      EXPECT_TRUE(contains(e.what(), path_)) << place << ": " << e.what();
      EXPECT_TRUE(read_file(path_) == broken) << place << ": " << e.what();
    }
    for (const char* end : {"-wal", "-shm", "-journal"}) std::remove((path_ + end).c_str());
  }
  EXPECT_GT(refused, 50U);
}

TEST_F(StudyFilesTest, AnotherProgramsDatabaseIsRefused) {
  run_sql(path_, "CREATE TABLE accounts (name TEXT); INSERT INTO accounts VALUES ('x')");
  expect_refused({path_, "not a study of this program"});
}

TEST_F(StudyFilesTest, AStudyOfOptunaItselfIsRefused) {
  make_study(path_);
  run_sql(path_, "DELETE FROM study_system_attributes; PRAGMA journal_mode = DELETE");
  expect_refused({path_, "not a study of this program"});
}

TEST_F(StudyFilesTest, TheLogThatAnotherProgramLeftIsNotTouched) {
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_db_config(other, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "PRAGMA journal_mode = WAL; CREATE TABLE accounts (name TEXT)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(other);
  const std::string log = read_file(path_ + "-wal");
  ASSERT_FALSE(log.empty());
  expect_refused({path_, "not a study of this program"});
  EXPECT_TRUE(read_file(path_ + "-wal") == log);
}

TEST_F(StudyFilesTest, AChangeThatWasCutOffIsUndone) {
  make_study(path_);
  run_sql(path_, "PRAGMA journal_mode = DELETE");
  const std::string cut = folder_ / "cut.db";
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  const char* const change =
      "PRAGMA cache_size = 1; BEGIN; UPDATE trials SET state = 'FAIL'; "
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
      "INSERT INTO trial_user_attributes (trial_id, key, value_json) SELECT 1, 'k' || i, i FROM n";
  ASSERT_EQ(sqlite3_exec(other, change, nullptr, nullptr, nullptr), SQLITE_OK);
  folder_.write("cut.db", read_file(path_));  // as a process leaves them that is killed now
  folder_.write("cut.db-journal", read_file(path_ + "-journal"));
  sqlite3_close(other);
  ASSERT_NE(read_file(cut), read_file(path_));
  expect_error(ErrorKind::kIo, {cut, "in the middle of a change"}, [&] { Study::read(cut); });
  EXPECT_TRUE(Study::check(cut));
  EXPECT_EQ(open_study(cut).trials()[0].state, TrialState::kComplete);
}

TEST_F(StudyFilesTest, ACheckTakesWhatIsNotYetAStudyForNone) {
  EXPECT_FALSE(Study::check(path_));
  EXPECT_NE(access(path_.c_str(), F_OK), 0) << "a check made a file";
  folder_.write("study.db", "");
  EXPECT_FALSE(Study::check(path_));
  folder_.write("study.db", "text");
  expect_error(ErrorKind::kData, {path_, "not a study"}, [&] { Study::check(path_); });
  std::remove(path_.c_str());
  run_sql(path_, "CREATE TABLE accounts (name TEXT)");
  expect_error(ErrorKind::kData, {path_, "not a study"}, [&] { Study::check(path_); });
}

struct Attack {
  std::string name;
  std::string sql;
  std::string part;  // of the message
};

class HostileStudyTest : public StudyFilesTest, public testing::WithParamInterface<Attack> {};

TEST_P(HostileStudyTest, IsRefused) {
  make_study(path_);
  run_sql(path_, GetParam().sql);
  expect_refused({path_, GetParam().part});
}

std::string facts_are(const std::string& value) {
  return "UPDATE trial_user_attributes SET value_json = " + value +
         " WHERE trial_id = 2 AND key = 'macs'";
}

INSTANTIATE_TEST_SUITE_P(
    Tables, HostileStudyTest,
    testing::Values(
        Attack{"UnknownState", "UPDATE trials SET state = 'DANCING' WHERE number = 1",
               "trial 1: state \"DANCING\""},
        Attack{"StateOfBytes", "UPDATE trials SET state = x'00' WHERE number = 1", "trial 1"},
        Attack{"NumberLeftOut", "UPDATE trials SET number = 7 WHERE number = 1",
               "trial 1 is missing"},
        Attack{"NumberTwice", "UPDATE trials SET number = 0 WHERE number = 1",
               "trial 1 is missing"},
        Attack{"NumberIsText", "UPDATE trials SET number = 'x' WHERE number = 1",
               "trial 1 is missing"},
        Attack{"NumberIsNull", "UPDATE trials SET number = NULL WHERE number = 1",
               "trial 0 is missing"},
        Attack{"NumberIsNegative", "UPDATE trials SET number = -1 WHERE number = 1",
               "trial 0 is missing"},
        Attack{"FactIsNotJson", facts_are("'{bad'"), "trial 1: \"macs\": not JSON"},
        Attack{"FactIsNull", facts_are("NULL"), "trial 1: a fact is not text"},
        Attack{"FactIsBytes", facts_are("x'3100'"), "trial 1: a fact is not text"},
        Attack{"FactIsDeep", facts_are("printf('%.*c', 100000, '[')"), "trial 1: \"macs\": nests"},
        Attack{"FactIsTooLargeANumber", facts_are("'1e999'"), "trial 1: \"macs\""},
        Attack{"FactsWithoutEnd",
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) "
               "INSERT INTO trial_user_attributes (trial_id, key, value_json) "
               "SELECT 2, 'k' || i, '1' FROM n",
               "trial 1: has more than 10000 facts"},
        Attack{"EpochIsNegative", "UPDATE trial_intermediate_values SET step = -1 WHERE step = 1",
               "trial 0: an epoch"},
        Attack{"EpochIsText", "UPDATE trial_intermediate_values SET step = 'x' WHERE step = 1",
               "trial 0: an epoch"},
        Attack{"RewardOfEpochIsText",
               "UPDATE trial_intermediate_values SET intermediate_value = 'x' WHERE step = 1",
               "trial 0: its reward after epoch 1"},
        Attack{"RewardOfEpochIsOfNoKind",
               "UPDATE trial_intermediate_values SET intermediate_value_type = 'WHAT' "
               "WHERE step = 1",
               "trial 0: its reward after epoch 1"},
        Attack{"RewardIsNull", "UPDATE trial_values SET value = NULL", "trial 0: its reward"},
        Attack{"RewardIsInfiniteButCalledFinite", "UPDATE trial_values SET value = 9e999",
               "trial 0: its reward"},
        Attack{"RewardOfATrialThatRuns", "UPDATE trial_values SET trial_id = 2",
               "trial 1: has a reward"},
        Attack{"TrialsDeleted", "DELETE FROM trials", "speaks of what is not there"},
        Attack{"NoTable", "DROP TABLE trial_values", "trial_values"},
        Attack{"NoColumn", "ALTER TABLE trials RENAME COLUMN state TO mood", "state"},
        Attack{"AViewForATable",
               "ALTER TABLE trials RENAME TO t; CREATE VIEW trials AS SELECT * FROM t", "trials"},
        Attack{"OtherVersion", "UPDATE study_system_attributes SET value_json = '2'",
               "version \"2\""},
        Attack{"MarkIsBytes", "UPDATE study_system_attributes SET value_json = x'31'", "version"},
        Attack{"MarkOfNoStudy", "UPDATE study_system_attributes SET study_id = NULL", "damaged"},
        Attack{"NoStudy", "DELETE FROM studies", "damaged"}),
    [](const auto& one) { return one.param.name; });

TEST_F(StudyFilesTest, WhatItIsAboutIsCheckedToo) {
  make_study(path_);
  run_sql(path_, "UPDATE study_user_attributes SET value_json = '{' WHERE key = 'about.seed'");
  expect_error(ErrorKind::kData, {path_, "about.seed", "not JSON"}, [&] { open_study(path_); });
  run_sql(path_, "UPDATE study_user_attributes SET value_json = x'00' WHERE key = 'about.seed'");
  expect_error(ErrorKind::kData, {path_, "not text"}, [&] { Study::read(path_).about(); });
  run_sql(path_, "UPDATE study_user_attributes SET value_json = '[' WHERE key = 'best'");
  expect_error(ErrorKind::kData, {path_, "best"}, [&] { Study::read(path_).fact("best"); });
  run_sql(path_, "UPDATE study_user_attributes SET value_json = '1' WHERE key = 'about.seed'");
  expect_error(ErrorKind::kData, {path_, "best"}, [&] { Study::read(path_).facts(); });
  run_sql(path_, "UPDATE study_user_attributes SET value_json = '2' WHERE key = 'best'");
  EXPECT_EQ(Study::read(path_).facts().at("best"), 2);
  EXPECT_EQ(Study::read(path_).facts().at("about.seed"), 1);
}

TEST_F(StudyFilesTest, AttemptsThatAreNoNumberAreRefusedAndTheTrialIsLetGo) {
  for (const char* value : {"'\"x\"'", "'-1'", "'1.5'", "'18446744073709551615'", "'{}'"}) {
    SCOPED_TRACE(value);
    std::remove(path_.c_str());
    make_study(path_);
    run_sql(path_, std::string("UPDATE trial_user_attributes SET value_json = ") + value +
                       " WHERE trial_id = 2 AND key = 'attempts'");
    Study study = open_study(path_);
    expect_error(ErrorKind::kData, {path_, "trial 1", "attempts"}, [&] { study.claim(); });
    study.set_facts(1, {{"attempts", 5}});
    EXPECT_EQ(study.claim()->trial().facts["attempts"], 6);
  }
}

TEST_F(StudyFilesTest, StatementsInAFileAreNotRun) {
  make_study(path_);
  run_sql(path_, "CREATE TRIGGER gone AFTER UPDATE ON trials BEGIN DELETE FROM trial_params; END");
  Study study = open_study(path_);
  study.finish(1, TrialState::kComplete, 1, Json::object());
  EXPECT_EQ(run_sql(path_, "SELECT count(*) FROM trial_params"), std::vector<std::string>{"6"});
}

}  // namespace
}  // namespace adjoin::store
