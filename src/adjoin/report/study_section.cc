#include "adjoin/report/study_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "adjoin/core/table.h"
#include "adjoin/report/curves.h"
#include "adjoin/report/dots.h"
#include "adjoin/report/html_parts.h"
#include "adjoin/report/svg.h"

namespace adjoin::report {
namespace {

using store::TrialState;

constexpr size_t kMostDots = 2000;
constexpr size_t kTeacherColour = 0, kWinnerColour = 1, kFrontColour = 2;

using Trials = std::vector<const StudyTrial*>;
using Cost = std::optional<double>;

const char* word_of(TrialState state) {
  switch (state) {
    case TrialState::kComplete: return "complete";
    case TrialState::kPruned: return "stopped early";
    case TrialState::kFailed: return "failed";
    case TrialState::kRunning: return "begun";
    case TrialState::kWaiting: return "waiting";
  }
  return "";
}

/// A count of any size; "-" of none.
std::string count(Cost value) { return value ? with_commas(static_cast<int64_t>(*value)) : "-"; }

/// With digits enough to tell good trials apart.
std::string reward_text(double reward) {
  constexpr double kMost = 1e4;
  return std::abs(reward) < kMost ? fmt::format("{:.4f}", reward) : short_number(reward);
}

std::string winner_name(const StudyView& study) {
  return study.is_chosen ? "winner" : "best so far";
}

/// The better one first; those without a reward last.
bool is_better(const StudyTrial* a, const StudyTrial* b) {
  if (a->reward != b->reward) return a->reward > b->reward;
  return a->number < b->number;
}

/// At most as many as a chart shows: the first half of the best by `order`, and every so many of
/// the others.
template <class Order>
Trials thinned(Trials trials, Order order) {
  if (trials.size() <= kMostDots) return trials;
  std::sort(trials.begin(), trials.end(), order);
  constexpr size_t kFirst = kMostDots / 2;
  const size_t others = trials.size() - kFirst;
  const size_t stride = (others + kMostDots - kFirst - 1) / (kMostDots - kFirst);
  Trials kept(trials.begin(), trials.begin() + kFirst);
  for (size_t i = kFirst; i < trials.size(); i += stride) kept.push_back(trials[i]);
  return kept;
}

/// Those that have what a chart shows.
template <class Has>
Trials trials_with(const StudyView& study, Has has) {
  Trials trials;
  for (const StudyTrial& trial : study.trials) {
    if (has(trial)) trials.push_back(&trial);
  }
  return trials;
}

std::string title_of(const StudyTrial& trial) {
  constexpr size_t kMostLetters = 20;
  std::string text = fmt::format("trial {}, {}", trial.number, word_of(trial.state));
  if (!trial.proposer.empty()) text += ", by " + cut(trial.proposer, kMostLetters);
  if (trial.reward) text += ", reward " + reward_text(*trial.reward);
  if (trial.top1) text += fmt::format(", {:.2f} %", *trial.top1);
  return text;
}

DotLook look_of(const StudyTrial& trial) {
  return trial.is_complete() ? DotLook::kFilled : DotLook::kHollow;
}

/// A share of the teacher's, in words.
std::string beside(Cost own, Cost teacher) {
  return own && teacher ? fmt::format(" ({:.3f} of the teacher's)", *own / *teacher) : "";
}

std::string summary(const StudyView& study) {
  std::array<int64_t, 5> counts{};
  for (const StudyTrial& trial : study.trials) ++counts.at(static_cast<size_t>(trial.state));
  std::vector<std::string> parts;
  for (const TrialState state : {TrialState::kComplete, TrialState::kPruned, TrialState::kFailed,
                                 TrialState::kRunning, TrialState::kWaiting}) {
    parts.push_back(
        fmt::format("{} {}", with_commas(counts.at(static_cast<size_t>(state))), word_of(state)));
  }
  std::string text =
      fmt::format("{}: {}.", so_many(std::ssize(study.trials), "trial"), fmt::join(parts, ", "));
  const StudyTrial* const best = study.best();
  if (best == nullptr) return sentence(text + " None is complete with a reward.");
  std::vector<std::string> known;
  if (best->reward) known.push_back("reward " + reward_text(*best->reward));
  if (best->top1) {
    known.push_back(
        fmt::format("{:.2f} % top-1", *best->top1) +
        (study.teacher.top1 ? fmt::format(" (teacher {:.2f} %)", *study.teacher.top1) : ""));
  }
  if (best->macs) {
    known.push_back(count(best->macs) + " MACs" + beside(best->macs, study.teacher.macs));
  }
  if (best->params) {
    known.push_back(count(best->params) + " parameters" +
                    beside(best->params, study.teacher.params));
  }
  text += fmt::format(" The {} is trial {}{}{}.", winner_name(study), best->number,
                      known.empty() ? "" : ": ", fmt::join(known, ", "));
  return sentence(text);
}

/// Where the best reward of complete trials rises, as stairs.
std::vector<std::pair<double, double>> best_so_far(const StudyView& study) {
  std::vector<std::pair<double, double>> stairs;
  for (const StudyTrial& trial : study.trials) {
    if (!trial.is_complete() || !trial.reward) continue;
    if (!stairs.empty() && *trial.reward <= stairs.back().second) continue;
    const auto x = static_cast<double>(trial.number);
    if (!stairs.empty()) stairs.emplace_back(x, stairs.back().second);
    stairs.emplace_back(x, *trial.reward);
  }
  if (!stairs.empty()) {
    stairs.emplace_back(static_cast<double>(study.trials.back().number), stairs.back().second);
  }
  return stairs;
}

std::string rewards(const StudyView& study) {
  DotChart chart{.x = {.label = "trial", .is_whole = true},
                 .y = {"reward"},
                 .dots = {},
                 .colour = kTeacherColour,
                 .line = best_so_far(study),
                 .line_colour = kWinnerColour};
  const Trials trials =
      trials_with(study, [](const StudyTrial& trial) { return trial.reward.has_value(); });
  for (const StudyTrial* trial : thinned(trials, is_better)) {
    chart.dots.push_back(
        {static_cast<double>(trial->number), *trial->reward, title_of(*trial), look_of(*trial)});
  }
  if (const StudyTrial* best = study.best(); best != nullptr && best->reward) {
    chart.named.push_back(
        {static_cast<double>(best->number), *best->reward, winner_name(study), kWinnerColour});
  }
  return plot("Reward over time",
              "A dot per trial: filled when it is complete, hollow when it was stopped early or is "
              "not over. The line is the best so far.",
              dot_chart(chart));
}

/// Accuracy against one of the costs.
std::string front(const StudyView& study, const std::string& what, Cost StudyTrial::*cost,
                  Cost StudyCosts::*known) {
  const auto cost_of = [&](const StudyTrial* trial) { return *(trial->*cost); };
  const Trials trials =
      trials_with(study, [&](const StudyTrial& trial) { return (trial.*cost) && trial.top1; });
  std::vector<std::pair<double, double>> networks;
  Trials complete;
  Curve costs;  // whose y axis is to be the x axis
  const auto add_cost = [&](Cost value) {
    if (value) costs.points.emplace_back(0, *value);
  };
  for (const StudyTrial* trial : trials) {
    add_cost(trial->*cost);
    if (!trial->is_complete()) continue;
    networks.emplace_back(cost_of(trial), *trial->top1);
    complete.push_back(trial);
  }
  add_cost(study.teacher.*known);
  add_cost(study.target.*known);
  Axis x = axis_for({costs}, what);
  const double unit = x.is_log ? 1 : 1e6;
  if (!x.is_log) x.label = "million " + what;

  DotChart chart{.x = x, .y = {"top-1 %, images set aside", false, 0.5}, .dots = {}};
  chart.line_colour = kFrontColour;
  chart.has_line_dots = true;
  std::vector<const StudyTrial*> best;
  for (const size_t i : pareto_front(networks)) {
    best.push_back(complete[i]);
    chart.line.emplace_back(networks[i].first / unit, networks[i].second);
  }
  std::sort(best.begin(), best.end(), std::less<>());
  const auto is_best = [&](const StudyTrial* trial) {
    return std::binary_search(best.begin(), best.end(), trial, std::less<>());
  };
  const Trials shown = thinned(trials, [&](const StudyTrial* a, const StudyTrial* b) {
    return is_best(a) != is_best(b) ? is_best(a) : is_better(a, b);
  });
  for (const StudyTrial* trial : shown) {
    chart.dots.push_back(
        {cost_of(trial) / unit, *trial->top1,
         fmt::format("{}, {} {}", title_of(*trial), short_count(cost_of(trial)), what),
         look_of(*trial)});
  }
  if (study.teacher.*known && study.teacher.top1) {
    chart.named.push_back(
        {*(study.teacher.*known) / unit, *study.teacher.top1, "teacher", kTeacherColour});
  }
  if (const StudyTrial* winner = study.best(); winner != nullptr && winner->*cost && winner->top1) {
    chart.named.push_back(
        {cost_of(winner) / unit, *winner->top1, winner_name(study), kWinnerColour});
  }
  if (study.target.*known) chart.limit = *(study.target.*known) / unit;
  chart.limit_name = "target";
  return plot("Accuracy against " + what,
              "A dot per trial, hollow when it is not complete. The line joins the complete trials "
              "that no other beats in both.",
              dot_chart(chart));
}

std::string embedding(const StudyView& study) {
  DotChart chart{.x = {"first direction"}, .y = {"second direction"}, .dots = {}};
  chart.colour = kTeacherColour;
  Trials trials =
      thinned(trials_with(study, [](const StudyTrial& trial) { return trial.point.has_value(); }),
              is_better);
  std::sort(trials.begin(), trials.end(), is_better);
  Extent range;
  for (const StudyTrial* trial : trials) {
    if (trial->reward) range.add(*trial->reward);
  }
  // The best last, so that nothing pale covers it.
  for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial) {
    const auto& [x, y] = *(*trial)->point;
    Dot dot{x, y, title_of(**trial), DotLook::kHollow};
    if ((*trial)->reward) {
      const double span = range.high() - range.low();
      dot.look = DotLook::kShaded;
      dot.shade = span > 0 ? (*(*trial)->reward - range.low()) / span : 1;
    }
    chart.dots.push_back(std::move(dot));
  }
  if (!range.is_empty()) {
    chart.shades = {"reward " + short_number(range.low()), short_number(range.high())};
  }
  if (const StudyTrial* best = study.best(); best != nullptr && best->point) {
    chart.named.push_back(
        {best->point->first, best->point->second, winner_name(study), kWinnerColour});
  }
  return plot("Where the networks are in the learned embedding",
              "Networks that are near each other are alike to the search. The darker, the higher "
              "the reward; hollow: none yet.",
              dot_chart(chart));
}

std::string winner_picture(const StudyView& study) {
  if (!study.drawn) return "";
  return fmt::format("<h3>The {}</h3><div class=\"wide\">{}</div>", winner_name(study),
                     architecture(study.drawn->first, study.drawn->second, kWinnerColour));
}

std::string best_trials(const StudyView& study) {
  constexpr size_t kMost = 10;
  Trials trials =
      trials_with(study, [](const StudyTrial& trial) { return trial.reward.has_value(); });
  std::sort(trials.begin(), trials.end(), is_better);
  if (trials.size() > kMost) trials.resize(kMost);
  if (trials.empty()) return "";
  DenseTable table({"trial", "reward", "top-1 %", "MACs", "parameters", "blocks", "skips", "CPU ms",
                    "seconds", "<state"});
  for (const StudyTrial* trial : trials) {
    const auto& choice = trial->choice;
    const auto kept = [&] {
      return std::count_if(choice->blocks.begin(), choice->blocks.end(),
                           [](const BlockChoice& block) { return block.keep; });
    };
    table.add({trial == study.best()
                   ? fmt::format("<b class=\"c{}\">{}</b>", kWinnerColour, trial->number)
                   : std::to_string(trial->number),
               reward_text(*trial->reward), trial->top1 ? fmt::format("{:.2f}", *trial->top1) : "",
               trial->macs ? count(trial->macs) : "", trial->params ? count(trial->params) : "",
               choice ? fmt::format("{} of {}", kept(), choice->blocks.size()) : "",
               choice ? std::to_string(choice->skips.size()) : "", cell(trial->latency_ms),
               cell(trial->seconds), word_of(trial->state)});
  }
  return (trials.size() == 1 ? std::string("<h3>The best trial</h3>")
                             : fmt::format("<h3>The best {} trials</h3>", trials.size())) +
         table.html();
}

}  // namespace

std::string study_section(const StudyView& study) {
  if (study.trials.empty()) return "";
  std::string text = summary(study);
  if (study.trials.size() > kMostDots) {
    text += sentence(
        fmt::format("Charts show at most {} trials: the best, and every so many of the others.",
                    with_commas(kMostDots)));
  }
  return text + plots(rewards(study) + embedding(study)) +
         plots(front(study, "MACs", &StudyTrial::macs, &StudyCosts::macs) +
               front(study, "parameters", &StudyTrial::params, &StudyCosts::params)) +
         winner_picture(study) + best_trials(study);
}

}  // namespace adjoin::report
