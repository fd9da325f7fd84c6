#include "adjoin/store/study.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <ctime>
#include <limits>

#include "adjoin/core/error.h"
#include "adjoin/store/lock.h"
#include "adjoin/store/schema.h"
#include "adjoin/store/sqlite.h"

namespace adjoin::store {
namespace {

constexpr std::string_view kAboutPrefix = "about.";
constexpr const char* kAttempts = "attempts";
constexpr size_t kMaxFacts = 10000;  // of one trial: facts keep their order and are searched

constexpr std::array<std::pair<std::string_view, TrialState>, 5> kStates = {
    {{"WAITING", TrialState::kWaiting},
     {"RUNNING", TrialState::kRunning},
     {"COMPLETE", TrialState::kComplete},
     {"PRUNED", TrialState::kPruned},
     {"FAIL", TrialState::kFailed}}};

std::string_view name_of(TrialState state) {
  for (const auto& [name, value] : kStates) {
    if (value == state) return name;
  }
  return "";
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The same whatever the order of keys, and as it comes back from a file.
bool is_same(const Json& a, const Json& b) {
  return nlohmann::json::parse(dump(a)) == nlohmann::json::parse(dump(b));
}

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

std::optional<double> read_value(const Statement& row, int column) {
  const std::string kind = row.text(column + 1).value_or("");
  if (kind == "NAN") return std::numeric_limits<double>::quiet_NaN();
  if (kind == "INF_POS") return std::numeric_limits<double>::infinity();
  if (kind == "INF_NEG") return -std::numeric_limits<double>::infinity();
  const auto value = row.real(column);
  return kind == "FINITE" && value && std::isfinite(*value) ? value : std::nullopt;
}

std::string distribution_json(const Parameter& parameter) {
  if (parameter.words.empty()) {
    return fmt::format(
        R"({{"name": "IntDistribution", "attributes": {{"log": false, "step": {}, "low": {}, "high": {}}}}})",
        std::llround(parameter.step), std::llround(parameter.low), std::llround(parameter.high));
  }
  std::string choices;
  for (const std::string& word : parameter.words) {
    choices += (choices.empty() ? "" : ", ") + dump(word);
  }
  return fmt::format(R"({{"name": "CategoricalDistribution", "attributes": {{"choices": [{}]}}}})",
                     choices);
}

}  // namespace

Hold::~Hold() {
  if (lock_ >= 0) close(lock_);
}

struct Study::Connection {
  Connection(const std::string& path, Database::Mode mode, double wait_seconds)
      : database(path, mode, wait_seconds), is_read_only(mode == Database::Mode::kRead) {}

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

  void check_about(const Json& given) const;

  Database database;
  bool is_read_only;
  int64_t study_id = 0;
};

Json Study::Connection::attributes(std::string_view prefix) const {
  Statement rows = database.query(
      "SELECT key, value_json FROM study_user_attributes "
      "WHERE study_id = ? AND substr(key, 1, length(?)) = ? ORDER BY study_user_attribute_id",
      study_id, prefix, prefix);
  Json found = Json::object();
  while (rows.step()) {
    const auto key = rows.text(0);
    const auto text = rows.text(1);
    if (!key || !text) database.refuse("is damaged: what is known of the study is not text");
    if (found.size() >= kMaxFacts) {
      database.refuse(fmt::format("more than {} things are said of the study", kMaxFacts));
    }
    const std::string origin =
        fmt::format("{}: \"{}\" of the study", database.path(), one_line(*key).substr(0, 100));
    found[key->substr(prefix.size())] = parse_json(*text, origin);
  }
  return found;
}

void Study::Connection::set_attribute(const std::string& key, const Json& value) const {
  database.run(
      "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (?, ?, ?) "
      "ON CONFLICT (study_id, key) DO UPDATE SET value_json = excluded.value_json",
      study_id, std::string_view(key), std::string_view(dump(value)));
}

TrialState Study::Connection::state_of(const Statement& row, int column, int64_t number) const {
  const std::string text = row.text(column).value_or("");
  for (const auto& [name, state] : kStates) {
    if (name == text) return state;
  }
  refuse_trial(number, fmt::format("state \"{}\" is unknown", one_line(text).substr(0, 20)));
}

std::vector<StoredTrial> Study::Connection::load(std::optional<int64_t> only) const {
  Statement rows = database.query(
      "SELECT number, state FROM trials WHERE study_id = ?1 AND (?2 IS NULL OR number = ?2) "
      "ORDER BY number, trial_id",
      study_id, only);
  std::vector<StoredTrial> trials;
  while (rows.step()) {
    const int64_t expected = only.value_or(static_cast<int64_t>(trials.size()));
    if (rows.whole(0) != expected || (only && !trials.empty())) {
      database.refuse(fmt::format("trial {} is missing, or there twice", only ? *only : expected));
    }
    StoredTrial trial;
    trial.number = expected;
    trial.state = state_of(rows, 1, expected);
    trials.push_back(std::move(trial));
  }
  load_facts(trials, only);
  load_curves(trials, only);
  load_rewards(trials, only);
  return trials;
}

StoredTrial& Study::Connection::among(std::vector<StoredTrial>& trials, int64_t number) const {
  const int64_t first = trials.empty() ? 0 : trials.front().number;
  if (number < first || number - first >= static_cast<int64_t>(trials.size())) {
    refuse_trial(number, "is missing, but something is said of it");
  }
  return trials[static_cast<size_t>(number - first)];
}

void Study::Connection::load_facts(std::vector<StoredTrial>& trials,
                                   std::optional<int64_t> only) const {
  Statement rows = database.query(
      "SELECT number, key, value_json FROM trial_user_attributes JOIN trials USING (trial_id) "
      "WHERE study_id = ?1 AND (?2 IS NULL OR number = ?2) ORDER BY trial_user_attribute_id",
      study_id, only);
  while (rows.step()) {
    const int64_t number = rows.whole(0).value_or(-1);
    const auto key = rows.text(1);
    const auto text = rows.text(2);
    if (!key || !text) refuse_trial(number, "a fact is not text");
    Json& facts = among(trials, number).facts;
    if (facts.size() >= kMaxFacts) {
      refuse_trial(number, fmt::format("has more than {} facts", kMaxFacts));
    }
    const std::string origin =
        fmt::format("{}: trial {}: \"{}\"", database.path(), number, one_line(*key).substr(0, 100));
    facts[*key] = parse_json(*text, origin);
  }
}

void Study::Connection::load_curves(std::vector<StoredTrial>& trials,
                                    std::optional<int64_t> only) const {
  Statement rows = database.query(
      "SELECT number, step, intermediate_value, intermediate_value_type "
      "FROM trial_intermediate_values JOIN trials USING (trial_id) "
      "WHERE study_id = ?1 AND (?2 IS NULL OR number = ?2)",
      study_id, only);
  while (rows.step()) {
    const int64_t number = rows.whole(0).value_or(-1);
    const auto epoch = rows.whole(1);
    const auto value = read_value(rows, 2);
    if (!epoch || *epoch < 0) refuse_trial(number, "an epoch of its curve is not a whole number");
    if (!value) refuse_trial(number, fmt::format("its reward after epoch {} is no number", *epoch));
    among(trials, number).curve[*epoch] = *value;
  }
}

void Study::Connection::load_rewards(std::vector<StoredTrial>& trials,
                                     std::optional<int64_t> only) const {
  Statement rows = database.query(
      "SELECT number, value, value_type FROM trial_values JOIN trials USING (trial_id) "
      "WHERE study_id = ?1 AND (?2 IS NULL OR number = ?2) AND objective = 0",
      study_id, only);
  while (rows.step()) {
    const int64_t number = rows.whole(0).value_or(-1);
    const auto value = read_value(rows, 1);
    StoredTrial& trial = among(trials, number);
    if (!value || std::isnan(*value)) refuse_trial(number, "its reward is no number");
    if (!trial.is_over()) refuse_trial(number, "has a reward, but is not over");
    trial.reward = value;
  }
}

Study::Connection::Row Study::Connection::find(int64_t number) const {
  Statement row = database.query(
      "SELECT trial_id, state FROM trials WHERE study_id = ? AND number = ?", study_id, number);
  if (!row.step()) {
    throw Error(ErrorKind::kInternal, fmt::format("{}: has no trial {}", database.path(), number));
  }
  return {row.whole(0).value_or(-1), state_of(row, 1, number)};
}

int64_t Study::Connection::find_open(int64_t number) const {
  const Row row = find(number);
  if (row.state != TrialState::kWaiting && row.state != TrialState::kRunning) {
    throw Error(ErrorKind::kInternal, fmt::format("{}: trial {} is over; its rewards cannot change",
                                                  database.path(), number));
  }
  return row.id;
}

void Study::Connection::add_facts(int64_t trial_id, const Json& facts) const {
  for (const auto& [key, value] : facts.items()) {
    database.run(
        "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (?, ?, ?) "
        "ON CONFLICT (trial_id, key) DO UPDATE SET value_json = excluded.value_json",
        trial_id, std::string_view(key), std::string_view(dump(value)));
  }
}

void Study::Connection::add_trial(int64_t number, const Proposal& proposal) const {
  database.run("INSERT INTO trials (number, study_id, state) VALUES (?, ?, 'WAITING')", number,
               study_id);
  const int64_t trial_id = database.last_row();
  for (const Parameter& parameter : proposal.parameters) {
    database.run(
        "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
        "VALUES (?, ?, ?, ?)",
        trial_id, std::string_view(parameter.name), parameter.value,
        std::string_view(distribution_json(parameter)));
  }
  add_facts(trial_id, proposal.facts);
}

void Study::Connection::check_about(const Json& given) const {
  const Json stored = attributes(kAboutPrefix);
  const auto refuse = [&](const std::string& key, const std::string& had, const std::string& has) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: holds a study with {} {}, not {}; go on with the same, or choose "
                            "another file",
                            database.path(), key, had, has));
  };
  for (const auto& [key, value] : given.items()) {
    const auto place = stored.find(key);
    if (place == stored.end()) refuse(key, "none", dump(value));
    if (!is_same(*place, value)) refuse(key, dump(*place), dump(value));
  }
  for (const auto& [key, value] : stored.items()) {
    if (!given.contains(key)) refuse(key, dump(value), "none");
  }
}

Study::Study(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;
Study::~Study() = default;

Study Study::open(const std::string& path, const std::string& name, const Json& about,
                  const Options& options) {
  check_object(about);
  auto connection =
      std::make_unique<Connection>(path, Database::Mode::kWrite, options.wait_seconds);
  const Database& database = connection->database;
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
  connection->check_about(about);
  database.leave_log(false);
  database.use_log();
  return Study(std::move(connection));
}

Study Study::read(const std::string& path) {
  auto connection =
      std::make_unique<Connection>(path, Database::Mode::kRead, Options{}.wait_seconds);
  connection->study_id = find_study(connection->database);
  return Study(std::move(connection));
}

Json Study::about() const { return connection_->attributes(kAboutPrefix); }

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

std::optional<Claim> Study::claim() {
  connection_->check_writable();
  const Database& database = connection_->database;
  LockFile lock(database.real_path() + ".lock");
  Transaction change(database);
  std::optional<int64_t> taken;
  {
    Statement rows = database.query(
        "SELECT number FROM trials WHERE study_id = ? AND state IN ('WAITING', 'RUNNING') "
        "ORDER BY number",
        connection_->study_id);
    while (!taken && rows.step()) {
      const auto number = rows.whole(0);
      if (!number || *number < 0) database.refuse("the number of a trial is not a whole number");
      if (lock.try_lock(*number)) taken = number;
    }
  }
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

void Study::set_facts(int64_t number, const Json& facts) {
  connection_->check_writable();
  check_object(facts);
  Transaction change(connection_->database);
  connection_->add_facts(connection_->find(number).id, facts);
  change.commit();
}

}  // namespace adjoin::store
