#pragma once

// A study's rows in the database: how they are read, found and added. Changes are within a
// transaction of the caller.

#include <fmt/format.h>

#include "adjoin/core/error.h"
#include "adjoin/store/lock.h"
#include "adjoin/store/sqlite.h"
#include "adjoin/store/study.h"

namespace adjoin::store {

/// How names begin of what must be the same when a study goes on.
inline constexpr std::string_view kAboutPrefix = "about.";

std::string_view name_of(TrialState state);  ///< as Optuna writes it
std::string dump(const Json& value);         ///< in one line

struct Study::Connection {
  Connection(const std::string& path, Database::Mode mode, double wait_seconds,
             const StopSignal* stop = nullptr)
      : database(path, mode, wait_seconds, stop), is_read_only(mode == Database::Mode::kRead) {}

  void check_writable() const {
    if (is_read_only) {
      throw Error(ErrorKind::kInternal, database.path() + ": was opened only to be read");
    }
  }

  [[noreturn]] void refuse_trial(int64_t number, const std::string& what) const {
    database.refuse(fmt::format("trial {}: {}", number, what));
  }

  /// What is known of the study under names that begin with a prefix, without it.
  Json attributes(std::string_view prefix) const;
  void set_attribute(const std::string& key, const Json& value) const;

  /// All trials, or the one of a number.
  std::vector<StoredTrial> load(std::optional<int64_t> only) const;
  void load_facts(std::vector<StoredTrial>& trials, std::optional<int64_t> only) const;
  void load_curves(std::vector<StoredTrial>& trials, std::optional<int64_t> only) const;
  void load_rewards(std::vector<StoredTrial>& trials, std::optional<int64_t> only) const;

  /// Those that are not over, by number.
  std::vector<int64_t> open_trials() const;
  /// The first of them that nobody holds, which `lock` holds from now on.
  std::optional<int64_t> first_free(LockFile& lock) const;

  /// The one of a number among those that were loaded, all or one.
  StoredTrial& among(std::vector<StoredTrial>& trials, int64_t number) const;

  struct Row {
    int64_t id;
    TrialState state;
  };
  /// Of a trial that is there.
  Row find(int64_t number) const;
  /// Error(kInternal) when the trial is over.
  int64_t find_open(int64_t number) const;
  TrialState state_of(const Statement& row, int column, int64_t number) const;

  void add_facts(int64_t trial_id, const Json& facts) const;
  void add_trial(int64_t number, const Proposal& proposal) const;

  void check_about(const Json& given, const Options& options) const;

  Database database;
  bool is_read_only;
  int64_t study_id = 0;
};

}  // namespace adjoin::store
