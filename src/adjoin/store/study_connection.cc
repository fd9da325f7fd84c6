#include "adjoin/store/study_connection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace adjoin::store {
namespace {

constexpr size_t kMaxFacts = 10000;  // of one trial: facts keep their order and are searched

constexpr std::array<std::pair<std::string_view, TrialState>, 5> kStates = {
    {{"WAITING", TrialState::kWaiting},
     {"RUNNING", TrialState::kRunning},
     {"COMPLETE", TrialState::kComplete},
     {"PRUNED", TrialState::kPruned},
     {"FAIL", TrialState::kFailed}}};

/// The same whatever the order of keys, and as it comes back from a file.
bool is_same(const Json& a, const Json& b) {
  return nlohmann::json::parse(dump(a)) == nlohmann::json::parse(dump(b));
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

std::string_view name_of(TrialState state) {
  for (const auto& [name, value] : kStates) {
    if (value == state) return name;
  }
  return "";
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

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

std::vector<int64_t> Study::Connection::open_trials() const {
  Statement rows = database.query(
      "SELECT number FROM trials WHERE study_id = ? AND state IN ('WAITING', 'RUNNING') "
      "ORDER BY number",
      study_id);
  std::vector<int64_t> numbers;
  while (rows.step()) {
    const auto number = rows.whole(0);
    if (!number || *number < 0) database.refuse("the number of a trial is not a whole number");
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<int64_t> Study::Connection::first_free(LockFile& lock) const {
  for (const int64_t number : open_trials()) {
    if (lock.try_lock(number)) return number;
  }
  return std::nullopt;
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

void Study::Connection::check_about(const Json& given, const Options& options) const {
  const Json stored = attributes(kAboutPrefix);
  const auto refuse = [&](const std::string& key, const std::string& had, const std::string& has) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: holds a study with {} {}, not {}; go on with the same, or choose "
                            "another file",
                            database.path(), key, had, has));
  };
  for (const auto& [key, value] : given.items()) {
    const Json had = stored.contains(key) ? stored.at(key) : options.before.value(key, Json());
    if (!is_same(had, value)) refuse(key, had.is_null() ? "none" : dump(had), dump(value));
  }
  for (const auto& [key, value] : stored.items()) {
    const bool is_free =
        std::find(options.free.begin(), options.free.end(), key) != options.free.end();
    if (!is_free && !given.contains(key)) refuse(key, dump(value), "none");
  }
}

}  // namespace adjoin::store
