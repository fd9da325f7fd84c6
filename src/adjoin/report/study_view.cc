#include "adjoin/report/study_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "adjoin/core/table.h"
#include "adjoin/report/axes.h"
#include "adjoin/report/json_parts.h"
#include "adjoin/spec/architecture.h"
#include "adjoin/spec/derive.h"

namespace adjoin::report {
namespace {

using store::TrialState;

constexpr double kMostCount = 1e18;
constexpr double kMostPlace = 1e100;

/// Facts that could not be read.
class Unread {
 public:
  void add(const std::string& what) {
    if (count_++ == 0) first_ = what;
  }

  void tell(std::vector<std::string>& problems) const {
    if (count_ == 0) return;
    problems.push_back(count_ == 1
                           ? fmt::format("1 fact of the study cannot be read: {}.", first_)
                           : fmt::format("{} facts of the study cannot be read, the first is {}.",
                                         count_, first_));
  }

 private:
  int64_t count_ = 0;
  std::string first_;
};

/// Reads the facts of one owner, "trial 3"; null and missing ones are nothing.
class FactReader {
 public:
  FactReader(const Json& facts, std::string owner, Unread& unread)
      : facts_(facts), owner_(std::move(owner)), unread_(unread) {
    if (!facts.is_object() && !facts.is_null()) refuse("all that is said");
  }

  /// A value as it stands; null where there is none.
  const Json& at(const char* name) const {
    static const Json nothing;
    if (!facts_.is_object()) return nothing;
    const auto found = facts_.find(name);
    return found == facts_.end() ? nothing : *found;
  }

  std::optional<double> number(const char* name, double least, double most) const {
    const Json& value = at(name);
    if (value.is_null()) return std::nullopt;
    const std::optional<double> number = number_of(value);
    if (number && *number >= least && *number <= most) return number;
    refuse(name);
    return std::nullopt;
  }

  std::optional<double> count(const char* name) const { return number(name, 1, kMostCount); }
  std::optional<double> percent(const char* name) const { return number(name, 0, 100); }

  std::optional<std::pair<double, double>> place(const char* name) const {
    const Json& value = at(name);
    if (value.is_null()) return std::nullopt;
    const std::vector<double> numbers = numbers_of(value);
    const auto is_near = [](double number) { return std::abs(number) <= kMostPlace; };
    if (numbers.size() == 2 && is_near(numbers[0]) && is_near(numbers[1])) {
      return std::pair(numbers[0], numbers[1]);
    }
    refuse(name);
    return std::nullopt;
  }

  std::string word(const char* name) const {
    const Json& value = at(name);
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_null()) refuse(name);
    return "";
  }

  void refuse(const char* name) const { unread_.add(fmt::format("{} of {}", name, owner_)); }

 private:
  const Json& facts_;
  std::string owner_;
  Unread& unread_;
};

std::optional<double> reward_of(const store::StoredTrial& trial) {
  const auto is_number = [](double value) { return has_place(value, {}); };
  if (trial.reward && is_number(*trial.reward)) return trial.reward;
  if (trial.state != TrialState::kPruned && trial.state != TrialState::kRunning) {
    return std::nullopt;
  }
  for (auto last = trial.curve.rbegin(); last != trial.curve.rend(); ++last) {
    if (is_number(last->second)) return last->second;
  }
  return std::nullopt;
}

StudyTrial trial_of(const store::StoredTrial& stored, const std::optional<ModelSpec>& large,
                    Unread& unread) {
  const std::string owner = fmt::format("trial {}", stored.number);
  const FactReader facts(stored.facts, owner, unread);
  StudyTrial trial{.number = stored.number, .state = stored.state, .reward = reward_of(stored)};
  trial.top1 = facts.percent("top1");
  trial.macs = facts.count("macs");
  trial.params = facts.count("params");
  trial.seconds = facts.number("seconds", 0, kMostCount);
  trial.latency_ms = facts.number("latency_ms", 0, kMostCount);
  trial.point = facts.place("point");
  trial.proposer = facts.word("proposer");
  const Json& architecture = facts.at("architecture");
  if (!large || architecture.is_null()) return trial;
  try {
    trial.choice = architecture_from_json(*large, architecture, owner);
  } catch (const Error&) {
    facts.refuse("architecture");
  }
  return trial;
}

/// The first complete trial with the highest reward.
std::optional<size_t> best_of(const std::vector<StudyTrial>& trials) {
  std::optional<size_t> best;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!trials[i].is_complete() || !trials[i].reward) continue;
    if (!best || *trials[i].reward > *trials[*best].reward) best = i;
  }
  return best;
}

/// A count; `other` where it is none.
int64_t whole_of(const Json& count, size_t other) {
  const std::optional<double> number = number_of(count);
  return static_cast<int64_t>(number && *number >= 0 && *number < 1e9 ? *number
                                                                      : static_cast<double>(other));
}

void choose(StudyView& view, const Json& best, Unread& unread) {
  view.winner = best_of(view.trials);
  if (best.is_null()) return;
  const std::optional<double> number = number_of(best);
  const auto found =
      std::find_if(view.trials.begin(), view.trials.end(), [&](const StudyTrial& trial) {
        return number && static_cast<double>(trial.number) == *number;
      });
  view.is_chosen = found != view.trials.end();
  if (view.is_chosen) {
    view.winner = static_cast<size_t>(found - view.trials.begin());
  } else {
    unread.add("which trial is the best");
  }
}

}  // namespace

StudyView study_view(const std::vector<store::StoredTrial>& trials, const StudyFacts& facts,
                     const std::optional<ModelSpec>& large, std::vector<std::string>& problems) {
  Unread unread;
  StudyView view;
  for (const store::StoredTrial& trial : trials) {
    view.trials.push_back(trial_of(trial, large, unread));
  }
  const FactReader teacher(facts.teacher, "the teacher", unread);
  view.teacher = {teacher.percent("top1"), teacher.count("macs"), teacher.count("params")};
  const FactReader target(facts.target, "the target", unread);
  view.target = {{}, target.count("macs"), target.count("params")};
  choose(view, facts.best, unread);
  const auto over = std::count_if(trials.begin(), trials.end(),
                                  [](const store::StoredTrial& trial) { return trial.is_over(); });
  const int64_t since = over - whole_of(facts.best_of, trials.size());
  if (view.is_chosen && since > 0) {
    problems.push_back(so_many(since, "trial") +
                       " ended after the winner was chosen; adjoin search --resume looks among "
                       "them, too.");
  }
  const Json trained = facts.trained.is_object() ? facts.trained.value("trial", Json()) : Json();
  if (view.is_chosen && trained.is_number_integer() && trained != view.best()->number) {
    problems.push_back(fmt::format(
        "The networks here are of trial {}; trial {}, the best now, was not trained in full.",
        trained.dump(), view.best()->number));
  }
  if (view.winner && large && view.best()->choice) {
    try {
      view.drawn = {*large, derive(*large, *view.best()->choice, Geometry::kKept).spec};
    } catch (const Error& e) {
      problems.push_back(
          fmt::format("Trial {} cannot be drawn: {}.", view.best()->number, e.what()));
    }
  }
  unread.tell(problems);
  return view;
}

std::vector<size_t> pareto_front(const std::vector<std::pair<double, double>>& networks) {
  std::vector<size_t> order(networks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (networks[a].first != networks[b].first) return networks[a].first < networks[b].first;
    return networks[a].second > networks[b].second;
  });
  std::vector<size_t> front;
  double best = -std::numeric_limits<double>::infinity();
  for (const size_t i : order) {
    if (!(networks[i].second > best)) continue;
    best = networks[i].second;
    front.push_back(i);
  }
  return front;
}

}  // namespace adjoin::report
