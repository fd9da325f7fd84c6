#pragma once

// A run folder as reports and pages see it: what is there is read, what is missing or damaged is
// said, and nothing is refused that still holds something.

#include <optional>
#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/report/inspect_view.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin::report {

/// One evaluation of a network.
struct Point {
  int64_t epoch = 0;
  double top1 = 0;
  double loss = 0;
};

struct NetworkView {
  std::string name;  ///< "large", "small-4"; "model" of a run of one network
  std::vector<Point> points;
  std::optional<ModelSpec> spec = {};  ///< of its file
  std::string file = {};               ///< beside the log; empty where there is none
  int64_t file_bytes = 0;
  int64_t params = 0;  ///< 0: unknown, as macs
  int64_t macs = 0;
  std::optional<double> latency_ms = {};  ///< of one image on the CPU, as the run measured it

  std::optional<double> top1() const {
    return points.empty() ? std::nullopt : std::optional(points.back().top1);
  }
};

/// What a network says of an image.
struct Answer {
  std::string label;
  double probability = 0;
  bool is_right = false;
};

struct Sample {
  std::string picture;  ///< as a data URI
  std::string label;
  std::vector<Answer> answers;  ///< of each network
};

/// How the networks do on one class.
struct ClassView {
  std::string name;
  int64_t images = 0;
  std::vector<double> top1;  ///< of each network
};

struct RunView {  // NOLINT(bugprone-exception-escape): a network that is moved throws nothing
  std::string folder;
  std::string verb;                    ///< "train", "compress" or "search"
  Json config;                         ///< null where it could not be read
  std::string config_text;             ///< as it stands in the file
  std::vector<NetworkView> networks;   ///< the large one first
  std::optional<NetworkView> teacher;  ///< a large network that is none of them, but taught them
  std::vector<ClassView> classes;
  std::vector<Sample> samples;
  std::vector<InspectionView> inspections;  ///< not of every epoch
  int64_t epochs = 0;                       ///< that were finished
  int64_t wanted_epochs = 0;                ///< 0: unknown
  double seconds = 0;                       ///< of the last training
  double whole_seconds = 0;           ///< with the search before it, of all its processes; 0: none
  std::vector<std::string> problems;  ///< a sentence each

  bool is_empty() const { return networks.empty(); }

  /// What the others are compared with, where there is one.
  const NetworkView& large() const { return teacher ? *teacher : networks.front(); }

  /// A text of the config, or nothing.
  std::string setting(const std::string& key) const;
};

/// "train", "compress" or "search": the command whose config it is.
std::string verb_of(const Json& config);

/// Error(kIo) when there is no such folder, Error(kData) when nothing in it is of a run.
void check_run(const std::string& folder);

/// What is there of a run. Error(kIo) when there is no such folder.
RunView read_run(const std::string& folder);

/// The folders beside a run that hold runs, too, by name; itself left out.
std::vector<std::string> runs_beside(const std::string& folder);

}  // namespace adjoin::report
