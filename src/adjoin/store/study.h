#pragma once

// A study on disk: every network that a search tried or is about to try, in one SQLite file.
//
// The tables are those of Optuna (schema 12, alembic v3.2.0.a), so that its dashboard opens the
// file. Several processes work on one study; each trial is held by one of them at a time, by a lock
// that ends with the process. A process that is killed at any moment loses nothing that was
// written.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/core/signals.h"

namespace adjoin::store {

/// As Optuna calls them: WAITING, RUNNING, COMPLETE, PRUNED, FAIL.
enum class TrialState { kWaiting, kRunning, kComplete, kPruned, kFailed };

struct StoredTrial {
  int64_t number = 0;  ///< counts from 0
  TrialState state = TrialState::kWaiting;
  std::optional<double> reward;     ///< of one that is over
  std::map<int64_t, double> curve;  ///< reward after each epoch, from 0
  /// By name, Optuna's user attributes: what is known of it, such as "architecture", "macs".
  Json facts = Json::object();

  bool is_over() const {
    return state == TrialState::kComplete || state == TrialState::kPruned ||
           state == TrialState::kFailed;
  }
};

/// How many trials there are.
struct Tally {
  int64_t trials = 0;
  int64_t over = 0;

  int64_t open() const { return trials - over; }
};

/// A value that a trial has of something that was chosen, as Optuna's tables show it.
struct Parameter {
  std::string name;
  double value = 0;  ///< of `words`: which one
  double low = 0;    ///< least and most of a whole number
  double high = 0;
  std::vector<std::string> words = {};  ///< instead of a number: one of these
  double step = 1;                      ///< of a whole number
};

/// A network to be tried.
struct Proposal {
  Json facts = Json::object();
  std::vector<Parameter> parameters;
};

/// Keeps other processes from the same until it is destroyed, or the process ends.
class Hold {
 public:
  explicit Hold(int lock) : lock_(lock) {}
  Hold(Hold&& other) noexcept : lock_(std::exchange(other.lock_, -1)) {}
  Hold& operator=(Hold&&) = delete;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();

 private:
  int lock_ = -1;  // descriptor whose lock of one byte is the hold
};

/// A trial that is held.
class Claim {
 public:
  Claim(StoredTrial trial, Hold hold) : trial_(std::move(trial)), hold_(std::move(hold)) {}

  const StoredTrial& trial() const { return trial_; }

 private:
  StoredTrial trial_;
  Hold hold_;
};

/// Error(kMissingPart) where this program was built without SQLite.
void check_available();

/// Error(kUsage) where a study cannot lie, because SQLite takes no path that long.
void check_path(const std::string& path);

class Study {
 public:
  struct Options {
    double wait_seconds = 30;          ///< for others that write
    const StopSignal* stop = nullptr;  ///< ends the wait while the study is opened, with Stopped
    /// What keys of `about` meant before studies had them.
    Json before = Json::object();
    /// Keys that studies had, and that may differ.
    std::vector<std::string> free = {};
  };

  /// Opens the study in the file at `path`, or begins it. `about`: an object, everything that must
  /// be the same when a study goes on. Error(kUsage) naming the first key that differs, with both
  /// values. Error(kData) when the file is damaged or something else: it is left as it is.
  /// Error(kIo) when it cannot be read or written, or stays locked. Error(kMissingPart) without
  /// SQLite.
  static Study open(const std::string& path, const std::string& name, const Json& about,
                    const Options& options);
  static Study open(const std::string& path, const std::string& name, const Json& about) {
    return open(path, name, about, Options{});
  }

  /// Whether there is one; not where its beginning was cut off. The errors that `open` has for a
  /// file that is damaged or something else.
  static bool check(const std::string& path, const StopSignal* stop = nullptr);

  /// One that is there, also while others write. Nothing can be changed through it. The same
  /// errors.
  static Study read(const std::string& path);

  Study(Study&&) noexcept;
  Study& operator=(Study&&) noexcept;
  ~Study();

  Json about() const;

  /// What is known of the study as a whole, by name; null where nothing is. The same tables as
  /// `about`, under other names.
  Json fact(const std::string& name) const;
  /// All of it, `about` included. Error(kData) where any cannot be read.
  Json facts() const;
  void set_fact(const std::string& name, const Json& value);

  /// By number.
  std::vector<StoredTrial> trials() const;

  /// Without reading what is known of them.
  Tally tally() const;

  /// Adds networks that wait to be tried, numbered on from `known`; nothing when there are more
  /// than `known` trials by now, because another process was first. Whether they were added.
  bool add(int64_t known, const std::vector<Proposal>& proposals);

  /// The right to propose, while no other process has it.
  std::optional<Hold> try_proposing();

  /// The first trial that waits, or whose process died; it is then kRunning, held by the claim, and
  /// its fact "attempts" counts one more. Nothing when there is none.
  std::optional<Claim> claim();

  /// Trials that are not over and that a process holds, by number.
  std::vector<int64_t> held() const;

  /// What came of an epoch of a trial: its reward so far, and facts that are new or different. An
  /// epoch that is reported again replaces what was said.
  void report(int64_t number, int64_t epoch, double reward, const Json& facts);

  /// Ends a trial. `reward` of NaN: none.
  void finish(int64_t number, TrialState state, double reward, const Json& facts);

  /// Adds to the facts of a trial, or of several at once.
  void set_facts(int64_t number, const Json& facts);
  void set_facts(const std::vector<std::pair<int64_t, Json>>& facts);

 private:
  friend class Heeding;
  struct Connection;
  explicit Study(std::unique_ptr<Connection> connection);
  void heed(const StopSignal* stop) noexcept;

  std::unique_ptr<Connection> connection_;
};

/// While it lives, a signal ends every wait for others that write to the study, with Stopped.
class Heeding {
 public:
  Heeding(Study& study, const StopSignal& stop) : study_(study) { study_.heed(&stop); }
  ~Heeding() { study_.heed(nullptr); }
  Heeding(const Heeding&) = delete;
  Heeding& operator=(const Heeding&) = delete;

 private:
  Study& study_;
};

}  // namespace adjoin::store
