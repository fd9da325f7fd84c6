#include "adjoin/store/study.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <ctime>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"
#include "adjoin/store/lock.h"
#include "adjoin/store/schema.h"
#include "adjoin/store/study_connection.h"

namespace adjoin::store {
namespace {

constexpr const char* kAttempts = "attempts";

void check_object(const Json& facts) {
  if (!facts.is_object()) {
    throw Error(ErrorKind::kInternal, "facts of a study are an object, not " + dump(facts));
  }
}

/// Local time as Optuna writes it.
std::string now() {
  timeval time{};
  gettimeofday(&time, nullptr);
  std::tm parts{};
  localtime_r(&time.tv_sec, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return fmt::format("{}.{:06}", text.data(), time.tv_usec);
}

/// A number in Optuna's two columns: the value where it is finite, and its kind.
std::optional<double> stored_value(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string_view stored_kind(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INF_POS" : "INF_NEG";
  return "FINITE";
}

std::string working_folder() {
  std::array<char, 4096> text{};
  return getcwd(text.data(), text.size()) == nullptr ? "" : text.data();
}

}  // namespace

void check_available() {}

void check_path(const std::string& path) {
  constexpr size_t kMostBytes = 504;  // SQLite's 512, and eight for the names of its journals
  const bool is_whole = path.starts_with('/');
  const size_t bytes = path.size() + (is_whole ? 0 : 1 + working_folder().size());
  if (bytes <= kMostBytes) return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("{}: a study's whole path has at most {} bytes, and this one {}; choose a "
                  "shorter --output",
                  path, kMostBytes, bytes));
}

Hold::~Hold() {
  if (lock_ >= 0) close(lock_);
}

Study::Study(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;
Study::~Study() = default;

Study Study::open(const std::string& path, const std::string& name, const Json& about,
                  const Options& options) {
  check_object(about);
  auto connection = std::make_unique<Connection>(path, Database::Mode::kWrite, options.wait_seconds,
                                                 options.stop);
  Database& database = connection->database;
  if (!has_tables(database)) {
    Transaction change(database);
    if (!has_tables(database)) {  // nobody else was first
      connection->study_id = make_tables(database, name);
      for (const auto& [key, value] : about.items()) {
        connection->set_attribute(std::string(kAboutPrefix) + key, value);
      }
      change.commit();
    }
  }
  connection->study_id = find_study(database);
  connection->check_about(about, options);
  database.leave_log(false);
  database.use_log();
  database.heed(nullptr);
  return Study(std::move(connection));
}

bool Study::check(const std::string& path, const StopSignal* stop) {
  if (place_at(path) == Place::kNothing) return false;
  const Database database(path, Database::Mode::kWrite, Options{}.wait_seconds, stop);
  if (!has_tables(database)) return false;
  find_study(database);
  return true;
}

Study Study::read(const std::string& path) {
  auto connection =
      std::make_unique<Connection>(path, Database::Mode::kRead, Options{}.wait_seconds);
  connection->study_id = find_study(connection->database);
  return Study(std::move(connection));
}

Json Study::about() const { return connection_->attributes(kAboutPrefix); }

Json Study::facts() const { return connection_->attributes(""); }

Json Study::fact(const std::string& name) const {
  Statement row = connection_->database.query(
      "SELECT value_json FROM study_user_attributes WHERE study_id = ? AND key = ?",
      connection_->study_id, std::string_view(name));
  if (!row.step()) return nullptr;
  const std::string origin =
      fmt::format("{}: \"{}\" of the study", connection_->database.path(), name);
  return parse_json(row.text(0).value_or(""), origin);
}

void Study::set_fact(const std::string& name, const Json& value) {
  connection_->check_writable();
  if (name.starts_with(kAboutPrefix)) {
    throw Error(ErrorKind::kInternal,
                fmt::format("fact \"{}\" would change what a study is about", name));
  }
  Transaction change(connection_->database);
  connection_->set_attribute(name, value);
  change.commit();
}

std::vector<StoredTrial> Study::trials() const {
  const Transaction moment(connection_->database, Transaction::Kind::kRead);
  return connection_->load(std::nullopt);
}

bool Study::add(int64_t known, const std::vector<Proposal>& proposals) {
  connection_->check_writable();
  for (const Proposal& proposal : proposals) check_object(proposal.facts);
  const Database& database = connection_->database;
  Transaction change(database);
  int64_t count = 0;
  {
    Statement row =
        database.query("SELECT count(*) FROM trials WHERE study_id = ?", connection_->study_id);
    if (row.step()) count = row.whole(0).value_or(0);
  }
  if (count > known) return false;
  if (count < known) {
    database.refuse(fmt::format("holds {} trials, but had {} before", count, known));
  }
  for (const Proposal& proposal : proposals) connection_->add_trial(count++, proposal);
  change.commit();
  return true;
}

Tally Study::tally() const {
  Statement row = connection_->database.query(
      "SELECT count(*), sum(state NOT IN ('WAITING', 'RUNNING')) FROM trials WHERE study_id = ?",
      connection_->study_id);
  if (!row.step()) return {};
  return {row.whole(0).value_or(0), row.whole(1).value_or(0)};
}

std::optional<Claim> Study::claim() {
  connection_->check_writable();
  const Database& database = connection_->database;
  if (tally().open() == 0) return std::nullopt;  // nothing to wait for the right to write for
  LockFile lock(database.real_path() + ".lock");
  Transaction change(database);
  const std::optional<int64_t> taken = connection_->first_free(lock);
  if (!taken) return std::nullopt;
  StoredTrial trial = std::move(connection_->load(taken).front());
  const Json attempts = trial.facts.contains(kAttempts) ? trial.facts[kAttempts] : Json(0);
  constexpr int64_t kMost = int64_t{1} << 32;
  if (!attempts.is_number_integer() || attempts < 0 || attempts > kMost) {
    connection_->refuse_trial(*taken, "its attempts are not a whole number");
  }
  trial.state = TrialState::kRunning;
  trial.facts[kAttempts] = attempts.get<int64_t>() + 1;
  const int64_t trial_id = connection_->find(*taken).id;
  database.run("UPDATE trials SET state = 'RUNNING', datetime_start = ? WHERE trial_id = ?",
               std::string_view(now()), trial_id);
  connection_->add_facts(trial_id, {{kAttempts, trial.facts[kAttempts]}});
  change.commit();
  return Claim(std::move(trial), Hold(lock.release()));
}

std::vector<int64_t> Study::held() const {
  const LockFile lock(connection_->database.real_path() + ".lock");
  std::vector<int64_t> numbers = connection_->open_trials();
  std::erase_if(numbers, [&](int64_t number) { return !lock.is_locked(number); });
  return numbers;
}

void Study::heed(const StopSignal* stop) noexcept { connection_->database.heed(stop); }

std::optional<Hold> Study::try_proposing() {
  connection_->check_writable();
  constexpr int64_t kPlace = int64_t{1} << 40;  // beyond the number of any trial
  LockFile lock(connection_->database.real_path() + ".lock");
  if (!lock.try_lock(kPlace)) return std::nullopt;
  return Hold(lock.release());
}

void Study::report(int64_t number, int64_t epoch, double reward, const Json& facts) {
  connection_->check_writable();
  check_object(facts);
  if (epoch < 0) throw Error(ErrorKind::kInternal, "epochs of a trial count from 0");
  Transaction change(connection_->database);
  const int64_t trial_id = connection_->find_open(number);
  connection_->database.run(
      "INSERT INTO trial_intermediate_values "
      "(trial_id, step, intermediate_value, intermediate_value_type) VALUES (?, ?, ?, ?) "
      "ON CONFLICT (trial_id, step) DO UPDATE SET "
      "intermediate_value = excluded.intermediate_value, "
      "intermediate_value_type = excluded.intermediate_value_type",
      trial_id, epoch, stored_value(reward), stored_kind(reward));
  connection_->add_facts(trial_id, facts);
  change.commit();
}

void Study::finish(int64_t number, TrialState state, double reward, const Json& facts) {
  connection_->check_writable();
  check_object(facts);
  if (state == TrialState::kWaiting || state == TrialState::kRunning) {
    throw Error(ErrorKind::kInternal, "a trial ends as complete, pruned or failed");
  }
  Transaction change(connection_->database);
  const int64_t trial_id = connection_->find_open(number);
  connection_->database.run("UPDATE trials SET state = ?, datetime_complete = ? WHERE trial_id = ?",
                            name_of(state), std::string_view(now()), trial_id);
  if (!std::isnan(reward)) {
    connection_->database.run(
        "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, 0, ?, ?)",
        trial_id, stored_value(reward), stored_kind(reward));
  }
  connection_->add_facts(trial_id, facts);
  change.commit();
}

void Study::set_facts(int64_t number, const Json& facts) { set_facts({{number, facts}}); }

void Study::set_facts(const std::vector<std::pair<int64_t, Json>>& facts) {
  connection_->check_writable();
  for (const auto& [number, of_one] : facts) check_object(of_one);
  Transaction change(connection_->database);
  for (const auto& [number, of_one] : facts) {
    connection_->add_facts(connection_->find(number).id, of_one);
  }
  change.commit();
}

}  // namespace adjoin::store
