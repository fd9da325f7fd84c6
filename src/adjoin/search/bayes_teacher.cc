// The large network of a search by trials: where it comes from, the study that is about it, and
// what trials are compared with.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "adjoin/core/place.h"
#include "adjoin/core/table.h"
#include "adjoin/models/load.h"
#include "adjoin/search/bayes_run.h"

namespace adjoin::search {
namespace {

constexpr const char* kBaseline = "baseline";

/// A fact of the study: the weights of the file `start`.
constexpr const char* kOrdered = "ordered";

/// Acts once a training is under way: what it was begun with is good.
class AtFirstStep : public train::Observer {
 public:
  explicit AtFirstStep(std::function<void()> act) : act_(std::move(act)) {}
  void on_step(const train::Position& /*position*/) override {
    if (const auto act = std::exchange(act_, nullptr)) act();
  }

 private:
  std::function<void()> act_;
};

/// What a training gives; where it has no end, the error says which one it was.
template <class Train>
double said_of(const char* what, Train train) {
  try {
    return train();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNumeric) throw;
    throw Error(error.kind(), fmt::format("while {}: {}", what, error.what()));
  }
}

}  // namespace

void BayesRun::open_study(const std::string& teacher_hash, const train::Stages& stages) {
  const Json about = study_about(config_, space_, teacher_hash);
  store::Study::Options options;
  options.before = usual_settings();
  options.free = final_fields();
  options.stop = &stages.stop;
  options.before["images"] = about.at("images");  // nobody looked at them
  study_ = store::Study::open(study_file(), space_.large().name, about, options);
  check_facts(space_, *study_, study_file());
}

/// Names the weights of the teacher of a study that is there. A damaged study is refused; one of
/// another network is when it is opened, with what differs.
std::string BayesRun::teacher_of_study(const train::Stages& stages) const {
  if (!store::Study::check(study_file(), &stages.stop)) return "";
  const store::Study study = store::Study::read(study_file());
  const Json about = study.about();
  if (about.value("network", Json()) == train::spec_hash(space_.large())) {
    check_facts(space_, study, study_file());
  }
  const Json weights = about.value("teacher_weights", Json());
  return weights.is_string() ? weights.get<std::string>() : "";
}

/// The teacher is that of --from; one file of it is in the folder, the same for all processes.
void BayesRun::take_teacher(const train::Stages& stages) {
  if (large_file(config_, teacher_) == teacher_) {  // all that is left of it
    return open_study(models::content_hash(models::load(teacher_).weights), stages);
  }
  const train::Job job = prepare_teacher(config_, stages.launch);
  const std::string hash = models::content_hash(job.start);
  open_study(hash, stages);
  const bool is_there = place_at(teacher_) == Place::kFile &&
                        models::content_hash(models::load(teacher_).weights) == hash;
  if (is_there) return;
  make_folders(folder_ + "/teacher");
  models::save(teacher_, job.header, job.start);
}

/// The teacher is trained, unless it was.
void BayesRun::train_teacher(const std::string& known, const train::Stages& stages) {
  const bool is_there = place_at(teacher_) == Place::kFile;
  if (!known.empty()) {  // what differs is said before hours of training
    open_study(is_there ? models::content_hash(models::load(teacher_).weights) : known, stages);
    const bool is_timed = !study_->fact(kTeacherSeconds).is_null();
    const bool may_go_on = place_at(folder_ + "/teacher/last.ckpt") == Place::kFile;
    if (is_there && (is_timed || !may_go_on)) return;
  }
  if (!is_there) {
    stages.note({known.empty() ? "the teacher is trained first"
                               : "the teacher of the study is not there: it is trained again"});
  }
  const double seconds = said_of("the teacher was trained", [&] {
    train::Job job = prepare_teacher(config_, stages.launch);
    job.observers.push_back(std::make_shared<AtFirstStep>([this] { write_config(); }));
    return stages.run(std::move(job), folder_ + "/teacher").seconds;
  });
  open_study(models::content_hash(models::load(teacher_).weights), stages);
  study_->set_fact(kTeacherSeconds, seconds);
}

void BayesRun::begin_study(const train::Stages& stages) {
  const std::string known = teacher_of_study(stages);  // before hours of training
  if (known.empty() && place_at(trial_folder(0)) != Place::kNothing) {
    stages.note({study_file() + ": is not there, or empty; trials begin anew"});
  }
  config_.compress.train.from.empty() ? train_teacher(known, stages) : take_teacher(stages);
  order_teacher(stages);
}

/// What students are slices of, and learn from: the teacher, its important heads and units first
/// where that is wanted. It is put in order once, so that all of them are slices of the same.
std::string BayesRun::start() const {
  const bool is_ordered = config_.compress.order != compress::Order::kNone;
  return is_ordered ? folder_ + "/teacher/ordered.safetensors" : teacher_;
}

void BayesRun::order_teacher(const train::Stages& stages) {
  if (start() == teacher_) return;
  const bool is_there = place_at(start()) == Place::kFile;
  if (is_there && study_->fact(kOrdered) == models::content_hash(models::load(start()).weights)) {
    return;
  }
  if (study_->tally().trials > 0 && study_->fact(kOrdered).is_null()) {
    throw Error(ErrorKind::kUsage,
                study_file() +
                    ": was begun by a version that put every network in an order of its "
                    "own; start another search in another --output");
  }
  const models::Model network = ordered(config_, teacher_, stages.launch);
  const std::string hash = models::content_hash(network.weights);
  if (study_->tally().trials > 0 && study_->fact(kOrdered) != hash) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: is {}, and the order that is measured now is another; put that "
                            "file back",
                            start(), is_there ? "not the one that trials were slices of" : "gone"));
  }
  models::save(start(), network.header, network.weights);
  study_->set_fact(kOrdered, hash);
}

/// How the large network does, where rewards look at it.
void BayesRun::measure_baseline(const train::Stages& stages) {
  if (!study_->fact("teacher").is_null()) return;
  const train::Evaluation found = judged(config_, teacher_, JudgedBy::kSetAside, stages.launch);
  const Price price = space_.price(space_.whole());
  Json teacher = {{"top1", found.top1}, {"macs", price.macs}, {"params", price.params}};
  stages.note({fmt::format("the teacher is right about {:.2f} % of the {} images set aside",
                           found.top1, with_commas(found.images))});
  if (config_.bayes.reward_by == RewardBy::kAccuracy) {
    if (found.top1 == 0) {
      stages.note(
          {"warning: with such a teacher every reward is 0, and the search learns nothing; "
           "more --epochs, a larger --search-fraction or --reward-by tse would help"});
    }
  } else {
    stages.note({"the teacher is trained as trials are, to compare their losses with"});
    const std::string folder = folder_ + "/search/baseline";
    if (study_->fact(kBaseline).is_null()) clear_folder(folder);  // of another study
    train::Job job = prepare_student(config_, start(), space_.whole(), Length::kTrial,
                                     Images::kHeldIn, stages.launch);
    const int64_t epochs = job.config.epochs;
    job.is_enough = [this, epochs](double time, const train::EpochReport& report) {
      Json kept = study_->fact(kBaseline);
      if (!kept.is_object()) kept = Json::object();
      kept[std::to_string(std::llround(time * static_cast<double>(epochs)))] = report.train_loss;
      study_->set_fact(kBaseline, kept);
      return false;
    };
    study_->set_fact(kBaselineSeconds, said_of("the teacher was trained as trials are", [&] {
                       return stages.go_on(std::move(job), folder).seconds;
                     }));
    const Json kept = study_->fact(kBaseline);
    for (int64_t i = 0; i < epochs; ++i) {
      teacher["losses"].push_back(number_of(kept, std::to_string(i), kBaseline));
    }
    clear_weights(folder);
  }
  study_->set_fact("target", space_.limits().json());
  study_->set_fact("teacher", teacher);
}

Worth BayesRun::worth() const {
  const Json teacher = study_->fact("teacher");
  if (!teacher.is_object()) {
    throw Error(ErrorKind::kUsage,
                folder_ + ": the search there has not yet measured its teacher; join it later");
  }
  const char* const owner = "the teacher of the study";
  return {
      config_, space_, {number_of(teacher, "top1", owner), numbers_of(teacher, "losses", owner)}};
}

}  // namespace adjoin::search
