#include "adjoin/search/config.h"

#include <fmt/format.h>

#include "adjoin/compress/job.h"
#include "adjoin/core/error.h"
#include "adjoin/proxy/proxies.h"

namespace adjoin::search {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kConfig, message); }

/// Fields of adjoined training that those of plain training lack, and that no trial reads.
Json adjoined_fields(const compress::CompressConfig& config) {
  Json fields = to_json(config);
  const Json plain = to_json(config.train);
  for (const auto& [field, value] : plain.items()) fields.erase(field);
  for (const char* of_search : {"alpha", "alphas", "keep", "geometry", "order", "order_images"}) {
    fields.erase(of_search);
  }
  return fields;
}

/// Fields that mean nothing to --method bayes are refused rather than left out.
void check_bayes(const SearchConfig& config) {
  const Json usual = to_json(DanOptions{});
  const Json said = to_json(config.dan);
  for (const auto& [field, value] : said.items()) {
    if (value == usual.at(field)) continue;
    refuse(fmt::format("{}: is not for the method bayes, which learns no mixture", field));
  }
  const auto refuse_field = [](const char* field, const char* why) {
    refuse(fmt::format("{}: is not for the method bayes, {}", field, why));
  };
  if (!config.search_data.empty()) refuse_field("search_data", "whose teacher knows other classes");
  if (!config.candidates.empty()) refuse_field("candidates", "which chooses any width");
  if (!config.compress.train.teacher.empty()) {
    refuse_field("teacher", "whose teacher is the large network; give it by --from");
  }
  if (config.compress.train.reset_head) {
    refuse_field("reset_head", "whose teacher must know the classes; train it on them first");
  }
  const train::TrainConfig& training = config.compress.train;
  if (config.bayes.reward_by != RewardBy::kAccuracy && training.distillation_alpha >= 1 &&
      training.distillation != train::DistillationKind::kHard) {
    refuse(
        "reward_by: the large network has no loss where it is taught by itself alone, so speeds of "
        "training cannot be compared; say a --distillation-alpha below 1, or --reward-by accuracy");
  }
}

}  // namespace

void check(const SearchConfig& config) {
  const bool has_target =
      !config.target_macs.empty() || !config.target_params.empty() || !config.target_bytes.empty();
  const bool is_free = config.method == Method::kDan || config.method == Method::kBayes;
  if (!is_free && !has_target) {
    refuse(fmt::format("method: {} needs a target; say --target-macs or --target-params",
                       enum_name(config.method)));
  }
  if (config.compress.train.grad_checkpointing && config.method == Method::kDan) {
    refuse("grad_checkpointing: a mixture cannot be computed twice; leave it out");
  }
  for (const auto& [field, proxy] :
       {std::pair("score", config.score), {"prefilter", config.prefilter}}) {
    if (proxy.empty()) continue;
    if (config.method != Method::kRandom && config.method != Method::kEvolve) {
      refuse(fmt::format("{}: is for the methods random and evolve, not {}", field,
                         enum_name(config.method)));
    }
    proxy::proxy_called(proxy);
  }
  if (!config.score.empty() && !config.prefilter.empty()) {
    refuse("prefilter: spares trainings, of which --score leaves none; say one of the two");
  }
  if (config.method == Method::kBayes) return check_bayes(config);
  compress::check_order(config.compress);
}

std::vector<std::string> final_fields() {
  std::vector<std::string> names;
  const Json fields = adjoined_fields({});
  for (const auto& [field, value] : fields.items()) names.push_back(field);
  return names;
}

std::string final_way(const SearchConfig& config) {
  std::string way(enum_name(config.bayes.final_training));
  if (config.bayes.final_training != FinalTraining::kAdjoined) return way;
  const Json usual = adjoined_fields({});
  Json settings = adjoined_fields(config.compress);
  for (const auto& [field, value] : usual.items()) {
    if (settings.at(field) == value) settings.erase(field);
  }
  return settings.empty() ? way : fmt::format("{} with {}", way, settings.dump());
}

bool has_trials(Method method) { return method != Method::kDan && method != Method::kUniform; }

std::vector<std::string> without_effect(const SearchConfig& config) {
  const Json said = to_json(config);
  const Json usual = to_json(SearchConfig{});
  std::vector<std::string> notes;
  const auto only = [&](bool has_effect, const Json& fields, const std::string& with) {
    if (has_effect) return;
    for (const auto& [field, value] : fields.items()) {
      if (said.at(field) == usual.at(field)) continue;
      notes.push_back(fmt::format("{}: has no effect without {}", field, with));
    }
  };
  const auto named = [&](std::initializer_list<const char*> names) {
    Json fields = Json::object();
    for (const char* name : names) fields[name] = usual.at(name);
    return fields;
  };
  const Method method = config.method;
  only(method == Method::kDan, to_json(DanOptions{}), "--method dan");
  only(method == Method::kBayes, to_json(BayesOptions{}), "--method bayes");
  only(method != Method::kUniform, named({"search_epochs", "search_data", "search_fraction"}),
       "a search");
  only(has_trials(method), named({"trials", "budget_minutes"}), "--method random, evolve or bayes");
  only(!config.prefilter.empty(), named({"prefilter_of"}), "--prefilter");
  only(config.compress.order == compress::Order::kTaylor, named({"order_images"}),
       "--order taylor");
  if (has_trials(method) && config.score.empty() && config.compress.train.model_ema) {
    notes.emplace_back("model_ema: is for the training that follows; trials are too short for it");
  }
  if (method != Method::kBayes) return notes;
  only(config.bayes.reward_by == RewardBy::kTseE, named({"tse_epochs"}), "--reward-by tse-e");
  only(config.bayes.reward_by == RewardBy::kTseEma, named({"tse_weight"}), "--reward-by tse-ema");
  only(config.compress.train.distillation == train::DistillationKind::kSoft,
       named({"distillation_tau"}), "--distillation soft");
  only(config.retrain, named({"finalists", "final_training"}), "--retrain");
  only(config.bayes.final_training == FinalTraining::kAdjoined, adjoined_fields({}),
       "--final-training adjoined");
  return notes;
}

}  // namespace adjoin::search
