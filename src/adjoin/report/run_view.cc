#include "adjoin/report/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"
#include "adjoin/core/table.h"
#include "adjoin/core/yaml.h"
#include "adjoin/cost/cost.h"
#include "adjoin/io/model_file.h"
#include "adjoin/report/json_parts.h"
#include "adjoin/report/picture.h"

namespace adjoin::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostResultBytes = size_t{1} << 20;
constexpr size_t kMostPredictionBytes = size_t{64} << 20;
constexpr size_t kMostRunsBeside = 100;

class Reader {
 public:
  explicit Reader(const std::string& folder) { view_.folder = folder; }

  RunView read() {
    read_config();
    read_result();
    result_.contains("finalists") ? read_finalist() : read_log();
    for (NetworkView& network : view_.networks) read_file(network, network.name + ".safetensors");
    if (number_at(result_, "search_seconds").value_or(0) > 0) {
      view_.whole_seconds = number_at(result_, "seconds").value_or(0);
    }
    read_measured();
    read_predictions();
    if (view_.wanted_epochs > view_.epochs) {
      say(fmt::format("{} of {} epochs are finished.", view_.epochs, view_.wanted_epochs));
    }
    return std::move(view_);
  }

 private:
  std::string path(const std::string& name) const { return view_.folder + "/" + name; }

  void say(const std::string& problem) { view_.problems.push_back(problem); }

  void read_config() {
    try {
      view_.config_text = read_text_file(path("config.yaml"), kMostYamlBytes);
      view_.config = parse_yaml(view_.config_text, "config.yaml");
    } catch (const Error& e) {
      say(fmt::format("The config cannot be read: {}.", e.what()));
    }
    if (!view_.config.is_object()) view_.config = Json::object();
    view_.verb = verb_of(view_.config);
    const auto epochs = view_.config.find("epochs");
    if (epochs != view_.config.end() && epochs->is_number_integer()) {
      view_.wanted_epochs = epochs->get<int64_t>();
    }
    if (view_.config.value("retrain", Json(true)) == Json(false)) view_.wanted_epochs = 0;
  }

  NetworkView& network(const std::string& name) {
    for (NetworkView& known : view_.networks) {
      if (known.name == name) return known;
    }
    return view_.networks.emplace_back(NetworkView{name, {}});
  }

  void read_log() {
    std::ifstream log;
    if (place_at(path("log.jsonl")) == Place::kFile) log.open(path("log.jsonl"));  // no pipe
    if (!log.is_open())
      return say("There is no log.jsonl: nothing was trained here, or it was removed.");
    int64_t number = 0;
    std::vector<int64_t> damaged;
    InspectionLog inspections;
    for (std::string line; std::getline(log, line);) {
      ++number;
      try {
        const Json json = Json::parse(line);
        take_line(json);
        if (json.at("kind") == "epoch") inspections.take(json, number);
      } catch (const std::exception&) {
        damaged.push_back(number);
      }
    }
    if (!damaged.empty()) {
      say(fmt::format("{} of log.jsonl cannot be read, the first is line {}.",
                      so_many(std::ssize(damaged), "line"), damaged.front()));
    }
    if (const auto problem = inspections.problem("log.jsonl")) say(*problem);
    view_.inspections = std::move(inspections).all();
    if (view_.networks.empty() && view_.wanted_epochs > 0) say("No epoch is finished yet.");
  }

  void take_line(const Json& line) {
    view_.seconds = std::max(view_.seconds, line.at("seconds").get<double>());
    if (line.at("kind") != "epoch") return;
    // Of parts of a search the config is that of the whole.
    view_.wanted_epochs = line.value("epochs", view_.wanted_epochs);
    if (line.contains("search")) view_.wanted_epochs = 0;  // the first half of a search
    const auto epoch = line.at("epoch").get<int64_t>();
    const auto point = [&](const Json& from) {
      return Point{epoch, from.at("eval_top1").get<double>(), from.at("eval_loss").get<double>()};
    };
    const bool has_small = line.contains("small") && !line.at("small").empty();
    const Point large = point(line);
    const bool is_small = view_.verb == "search" && !fs::exists(path("model.safetensors"));
    const char* const alone = is_small ? "small" : "model";
    network(has_small ? "large" : alone).points.push_back(large);
    if (has_small) {
      for (const Json& small : line.at("small")) {
        network(small.at("name").get<std::string>()).points.push_back(point(small));
      }
    }
    view_.epochs = std::max(view_.epochs, epoch + 1);
  }

  void read_file(NetworkView& network, const std::string& name) {
    std::error_code failure;
    const auto bytes = fs::file_size(path(name), failure);
    if (failure) return say(fmt::format("There is no {}: its costs are unknown.", name));
    try {
      network.spec = io::open_model(path(name)).header.spec;
    } catch (const Error& e) {
      return say(fmt::format("{} cannot be read: {}.", name, e.what()));
    }
    const Cost counted = cost(*network.spec);
    network.file = name;
    network.file_bytes = static_cast<int64_t>(bytes);
    network.params = counted.params;
    network.macs = counted.macs.total();
  }

  /// What the command measured at its end.
  void read_result() {
    if (!fs::exists(path("result.json"))) return;  // an unfinished run has none
    try {
      result_ = read_json_file(path("result.json"), kMostResultBytes);
    } catch (const std::exception& e) {
      say(fmt::format("result.json cannot be read: {}.", e.what()));
    }
    if (!result_.is_object()) result_ = Json::object();
  }

  /// The best of several that were trained in folders of their own, judged by other images there.
  void read_finalist() {
    try {
      view_.epochs = result_.at("epochs").get<int64_t>();
      for (const char* name : {"large", "small"}) {
        const Json& trained = result_.at(name);
        if (trained.at("file").get<std::string>().ends_with("/teacher/model.safetensors")) continue;
        network(name).points = {
            {view_.epochs - 1, trained.at("top1").get<double>(), trained.at("loss").get<double>()}};
      }
    } catch (const std::exception&) {
      say("result.json does not say what became of its finalists.");
    }
  }

  void read_measured() {
    try {
      for (NetworkView& network : view_.networks) {
        const Json* found = of_network(result_, network.name);
        if (found != nullptr && found->contains("latency_ms")) {
          network.latency_ms = found->at("latency_ms").get<double>();
        }
      }
      read_teacher();
    } catch (const std::exception&) {  // an unfinished run has none
    }
  }

  /// Of a search whose large network taught the small one and was not trained with it.
  void read_teacher() {
    constexpr const char* kFile = "teacher/model.safetensors";
    const bool is_taught = view_.networks.size() == 1 && view_.networks[0].name == "small";
    if (!is_taught || !result_.contains("large")) return;
    if (!fs::exists(path(kFile))) return say(fmt::format("There is no {}.", kFile));
    const Json& large = result_.at("large");
    NetworkView teacher{"large", {}};
    teacher.points = {{0, large.at("top1").get<double>(), large.at("loss").get<double>()}};
    if (large.contains("latency_ms")) teacher.latency_ms = large.at("latency_ms").get<double>();
    read_file(teacher, kFile);
    view_.teacher = std::move(teacher);
  }

  /// What the networks said of single images when the run was complete.
  void read_predictions() {
    if (!fs::exists(path("predictions.json"))) return;
    try {
      const Json said = read_json_file(path("predictions.json"), kMostPredictionBytes);
      const Json& names = said.at("classes");
      const auto name = [&](int64_t index) {
        const auto at = static_cast<size_t>(index);
        return at < names.size() ? names[at].get<std::string>() : std::to_string(index);
      };
      const Json& images = said.at("images");
      for (size_t i = 0; i < images.size(); ++i) {
        ClassView one{name(static_cast<int64_t>(i)), images[i].get<int64_t>(), {}};
        for (const NetworkView& network : view_.networks) {
          one.top1.push_back(said.at("correct").at(network.name).at(i).get<double>());
        }
        view_.classes.push_back(std::move(one));
      }
      for (const Json& from : said.at("samples")) {
        const auto label = from.at("label").get<int64_t>();
        Sample sample{from.at("image").get<std::string>(), name(label), {}};
        if (!is_png_data_uri(sample.picture)) throw Error(ErrorKind::kData, "a picture is none");
        for (const NetworkView& network : view_.networks) {
          const Json& answer = from.at("answers").at(network.name);
          const auto guess = answer.at("class").get<int64_t>();
          sample.answers.push_back(
              {name(guess), answer.at("probability").get<double>(), guess == label});
        }
        view_.samples.push_back(std::move(sample));
      }
    } catch (const Json::exception&) {
      forget_predictions("it is not of these networks, or damaged");
    } catch (const std::exception& e) {
      forget_predictions(e.what());
    }
  }

  void forget_predictions(const std::string& why) {
    view_.classes.clear();
    view_.samples.clear();
    say(fmt::format("predictions.json cannot be read: {}.", why));
  }

  static const Json* of_network(const Json& result, const std::string& name) {
    if (name == "model") return &result;
    if (name == "large") return &result.at("large");
    const Json& found = result.at("small");
    if (found.is_object()) return &found;  // of a search
    for (const Json& small : found) {
      if (small.at("file").get<std::string>().ends_with("/" + name + ".safetensors")) return &small;
    }
    return nullptr;
  }

  RunView view_;
  Json result_ = Json::object();
};

void check_folder(const std::string& folder) {
  if (fs::is_directory(folder)) return;
  throw Error(ErrorKind::kIo, folder + ": there is no such folder of a run");
}

}  // namespace

std::string RunView::setting(const std::string& key) const {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string verb_of(const Json& config) {
  return config.contains("alpha") ? "compress" : config.contains("candidates") ? "search" : "train";
}

void check_run(const std::string& folder) {
  check_folder(folder);
  const auto has = [&](const char* name) { return fs::exists(fs::path(folder) / name); };
  if (has("rank.json")) {
    throw Error(ErrorKind::kData, folder + ": holds scores of adjoin rank, which writes its page");
  }
  if (!has("config.yaml") && !has("log.jsonl") && !has("result.json")) {
    throw Error(ErrorKind::kData,
                folder + ": is not the folder of a run: it has no config.yaml and no log.jsonl");
  }
}

RunView read_run(const std::string& folder) {
  check_folder(folder);
  return Reader(folder).read();
}

std::vector<std::string> runs_beside(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code failure;
  const fs::path here = fs::weakly_canonical(folder, failure);
  for (const auto& entry : fs::directory_iterator(here.parent_path(), failure)) {
    if (entry.path() != here && place_at(entry.path() / "log.jsonl") == Place::kFile) {
      found.push_back(entry.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  if (found.size() > kMostRunsBeside) found.erase(found.begin(), found.end() - kMostRunsBeside);
  return found;
}

}  // namespace adjoin::report
