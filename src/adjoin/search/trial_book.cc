#include "adjoin/search/trial_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/core/hash.h"
#include "adjoin/spec/architecture.h"
#include "adjoin/spec/derive.h"
#include "adjoin/train/config.h"
#include "adjoin/train/job.h"

namespace adjoin::search {
namespace {

/// Parameters in the order of the blocks, as Optuna shows them.
std::vector<store::Parameter> parameters_of(const Exploration& space, const Choice& choice) {
  std::vector<store::Parameter> result;
  const std::vector<PlacedBlock> placed = placed_blocks(space.large());
  for (size_t i = 0; i < placed.size(); ++i) {
    const BlockChoice& block = choice.blocks[i];
    const auto number = [&](const char* what, int64_t value, int64_t most, int64_t step) {
      const auto least = static_cast<double>(step);
      result.push_back({placed[i].name + "." + what,
                        static_cast<double>(value),
                        least,
                        static_cast<double>(most),
                        {},
                        least});
    };
    result.push_back({placed[i].name + ".keep", block.keep ? 1.0 : 0.0, 0, 1, {"no", "yes"}});
    if (!block.keep) continue;
    const int64_t hidden = placed[i].block->hidden;
    number("heads", block.heads, placed[i].block->heads, 1);
    number("hidden", block.hidden, hidden, hidden_unit(hidden));
  }
  std::vector<std::string> norms;
  size_t chosen = 0;
  for (const NormPlacement norm : space.options().norms) {
    if (norm == choice.blocks[0].norm) chosen = norms.size();
    norms.emplace_back(enum_name(norm));
  }
  if (norms.size() > 1) result.push_back({"norm", static_cast<double>(chosen), 0, 0, norms});
  result.push_back({"skips", static_cast<double>(choice.skips.size()), 0,
                    static_cast<double>(std::max<size_t>(space.pairs().size(), 1))});
  return result;
}

[[noreturn]] void refuse_fact(const std::string& owner, const std::string& name,
                              const char* wanted) {
  throw Error(ErrorKind::kData,
              fmt::format("{}: \"{}\" is not {}; the study is damaged", owner, name, wanted));
}

/// Error(kData) where a fact is known and no count.
void check_count(const Json& facts, const char* name, const std::string& owner) {
  constexpr int64_t kMost = 1'000'000'000;
  const Json value = facts.value(name, Json(0));
  if (!value.is_number_integer() || value < 0 || value > kMost) refuse_fact(owner, name, "a count");
}

/// That there is such a network, and that it costs what is said.
void check_network(const Exploration& space, const store::StoredTrial& trial) {
  const std::string name = name_of(trial);
  const Choice choice = choice_of(space, trial);
  try {
    derive(space.large(), choice, Geometry::kKept);
  } catch (const Error& error) {
    throw Error(ErrorKind::kData, fmt::format("{}: {}", name, error.what()));
  }
  const Price price = space.price(choice);
  const Json macs = trial.facts.value("macs", Json());
  const Json params = trial.facts.value("params", Json());
  if (macs != price.macs || params != price.params) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: costs {} macs and {} params, but its architecture {} and {}; the "
                            "study is damaged",
                            name, macs.dump(), params.dump(), price.macs, price.params));
  }
}

void check_trial(const Exploration& space, const store::StoredTrial& trial) {
  const std::string name = name_of(trial);
  check_network(space, trial);
  for (const char* fact : {"seconds", "proposal_seconds", "top1"}) {
    number_of(trial.facts, fact, name);
  }
  for (const char* fact : {"attempts", "attempts_then"}) check_count(trial.facts, fact, name);
  for (const char* fact : {"losses", "tops", "latency"}) numbers_of(trial.facts, fact, name);
  const bool has_reward = trial.reward && std::isfinite(*trial.reward);
  if (trial.is_over() && trial.state != store::TrialState::kFailed && !has_reward) {
    throw Error(ErrorKind::kData, name + ": is over, but has no reward; the study is damaged");
  }
}

/// What a user can say and no study may change.
Json settings(const SearchConfig& config) {
  Json kept = Json::object();
  const Json fields = to_json(config);
  const std::vector<std::string> later = final_fields();
  for (const auto& [key, value] : fields.items()) {
    const bool may_change =
        std::find(kMayChange.begin(), kMayChange.end(), key) != kMayChange.end() ||
        std::find(later.begin(), later.end(), key) != later.end();
    if (!may_change && !train::is_free_to_change(key)) kept[key] = value;
  }
  return kept;
}

/// Wherever the images lie, there are as many of the same classes.
Json images_of(const SearchConfig& config) {
  train::TrainConfig training = config.compress.train;
  training.set_aside = config.search_fraction;
  const data::DataSets sets = train::open_images(training);
  uint64_t hash = fnv1a(Json(sets.val.classes).dump());
  for (const data::Split* split : {&*sets.train, &sets.val}) {
    hash = fnv1a(Json(split->labels).dump(), hash);
  }
  return fmt::format("{} to learn from, {} set aside, {} classes, fnv1a:{:016x}",
                     sets.train->size(), sets.val.size(), sets.val.classes.size(), hash);
}

}  // namespace

Json study_about(const SearchConfig& config, const Exploration& space, const std::string& teacher) {
  Json about = settings(config);
  about["network"] = train::spec_hash(space.large());
  about["teacher_weights"] = teacher;
  about["images"] = images_of(config);
  return about;
}

Json usual_settings() { return settings({}); }

store::Proposal proposal_of(const Exploration& space, const Choice& choice, Proposer proposer,
                            int64_t seed) {
  const Price price = space.price(choice);
  return {{{"architecture", architecture_to_json(space.large(), choice)},
           {"macs", price.macs},
           {"params", price.params},
           {"proposer", std::string(enum_name(proposer))},
           {"seed", seed}},
          parameters_of(space, choice)};
}

std::string name_of(const store::StoredTrial& trial) {
  return fmt::format("trial {} of the study", trial.number);
}

double number_of(const Json& facts, const std::string& name, const std::string& owner) {
  const Json value = facts.value(name, Json(0.0));
  if (!value.is_number()) refuse_fact(owner, name, "a number");
  return value.get<double>();
}

std::vector<double> numbers_of(const Json& facts, const std::string& name,
                               const std::string& owner) {
  std::vector<double> result;
  const Json values = facts.value(name, Json::array());
  if (!values.is_array()) refuse_fact(owner, name, "a list");
  for (const Json& value : values) {
    if (!value.is_number()) refuse_fact(owner, name, "of numbers");
    result.push_back(value.get<double>());
  }
  return result;
}

Choice choice_of(const Exploration& space, const store::StoredTrial& trial) {
  const auto found = trial.facts.find("architecture");
  if (found == trial.facts.end()) {
    throw Error(ErrorKind::kData, name_of(trial) + ": has no architecture; the study is damaged");
  }
  return architecture_from_json(space.large(), *found, name_of(trial) + ": architecture");
}

void check_facts(const Exploration& space, const store::Study& study, const std::string& path) {
  const Json teacher = study.facts().value("teacher", Json());
  const std::vector<store::StoredTrial> trials = study.trials();
  try {
    const char* const owner = "the teacher of the study";
    if (!teacher.is_null()) {
      if (!teacher.is_object() || !teacher.contains("top1")) refuse_fact(owner, "top1", "known");
      number_of(teacher, "top1", owner);
      numbers_of(teacher, "losses", owner);
    }
    for (const store::StoredTrial& trial : trials) check_trial(space, trial);
  } catch (const Error& error) {
    throw Error(ErrorKind::kData, fmt::format("{}: {}", path, error.what()));
  }
}

History history_of(const Exploration& space, const std::vector<store::StoredTrial>& trials) {
  const auto is_judged = [](const store::StoredTrial& trial) {
    return trial.is_over() && trial.reward && std::isfinite(*trial.reward);
  };
  std::optional<double> worst;
  for (const store::StoredTrial& trial : trials) {
    if (is_judged(trial)) worst = std::min(*trial.reward, worst.value_or(*trial.reward));
  }
  History history;
  for (const store::StoredTrial& trial : trials) {
    Choice choice = choice_of(space, trial);
    if (is_judged(trial)) {
      history.tried.push_back({std::move(choice), *trial.reward});
    } else if (trial.is_over() && worst) {
      history.tried.push_back({std::move(choice), *worst});
    } else {
      history.pending.push_back(std::move(choice));
    }
  }
  return history;
}

std::vector<store::StoredTrial> ranking(const std::vector<store::StoredTrial>& trials) {
  std::vector<store::StoredTrial> result;
  for (const store::StoredTrial& trial : trials) {
    const bool is_whole = trial.state == store::TrialState::kComplete && trial.reward;
    if (is_whole && std::isfinite(*trial.reward)) result.push_back(trial);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return *a.reward > *b.reward; });
  return result;
}

double sum_of(const std::vector<store::StoredTrial>& trials, const char* fact) {
  double sum = 0;
  for (const store::StoredTrial& trial : trials)
    sum += number_of(trial.facts, fact, name_of(trial));
  return sum;
}

std::vector<double> rewards_after(int64_t done, int64_t without,
                                  const std::vector<store::StoredTrial>& trials) {
  std::vector<double> rewards;
  for (const store::StoredTrial& trial : trials) {
    const auto found = trial.curve.find(done - 1);
    const bool is_other = trial.number != without && trial.state != store::TrialState::kFailed &&
                          found != trial.curve.end();
    if (is_other && std::isfinite(found->second)) rewards.push_back(found->second);
  }
  return rewards;
}

void draw_map(const Exploration& space, store::Study& study, uint64_t seed) {
  constexpr size_t kLeast = 3;
  constexpr size_t kMostLearned = 400;
  std::vector<int64_t> numbers;
  std::vector<Choice> choices;
  std::vector<double> rewards;
  bool is_new = false;
  for (const store::StoredTrial& trial : study.trials()) {
    if (!trial.is_over() || !trial.reward || !std::isfinite(*trial.reward)) continue;
    numbers.push_back(trial.number);
    choices.push_back(choice_of(space, trial));
    rewards.push_back(*trial.reward);
    is_new = is_new || !trial.facts.contains("point");
  }
  if (numbers.size() < kLeast || !is_new) return;
  const auto sequences = block_sequences(space, choices);
  std::vector<int64_t> learned;
  const size_t stride = (numbers.size() + kMostLearned - 1) / kMostLearned;
  for (size_t i = 0; i < numbers.size(); i += stride) learned.push_back(static_cast<int64_t>(i));
  LearnedEmbeddings embedding(sequences.size(2), {}, {seed});
  embedding.train(sequences, torch::tensor(rewards, torch::kFloat64), {learned});
  const torch::NoGradGuard no_grad;
  const auto points = embedding.points(0, sequences);
  const auto centred = points - points.mean(0, true);
  const auto [values, directions] = torch::linalg_eigh(centred.t().matmul(centred));
  auto main = directions.narrow(1, directions.size(1) - 2, 2).flip(1);  // (d, 2)
  // A direction and its opposite are the same to the solver: the largest entry points upward.
  const auto largest = main.gather(0, main.abs().argmax(0, true));
  const auto places = centred.matmul(main * torch::sign(largest)).contiguous();
  std::vector<std::pair<int64_t, Json>> facts;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double* const at = places.data_ptr<double>() + 2 * i;
    facts.emplace_back(numbers[i], Json{{"point", {at[0], at[1]}}});
  }
  study.set_facts(facts);
}

}  // namespace adjoin::search
