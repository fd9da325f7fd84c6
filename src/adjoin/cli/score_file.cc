#include "adjoin/cli/score_file.h"

#include <fmt/format.h>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/error.h"
#include "adjoin/core/place.h"
#include "adjoin/report/rank_page.h"

namespace adjoin::cli {

ScoreFile::ScoreFile(const std::string& folder, bool is_resumed, const Json& settings) {
  if (folder.empty()) return;
  for (const char* name : {"/config.yaml", "/last.ckpt"}) {
    if (place_at(folder + name) == Place::kNothing) continue;
    throw Error(ErrorKind::kUsage, folder + ": holds a run; choose another --output");
  }
  folder_.emplace(folder, true);
  const std::string path = *folder_ / "scores.jsonl";
  const std::string saved = *folder_ / "rank.json";
  const bool is_there = place_at(path) == Place::kFile;
  if (is_there && !is_resumed) {
    throw Error(ErrorKind::kUsage,
                folder + ": holds scores already; go on by --resume, or choose another --output");
  }
  if (is_there) {
    const Json before = read_json_file(saved);
    if (before != settings) {
      throw Error(ErrorKind::kUsage, fmt::format("{}: was begun with {}, now {}", saved,
                                                 before.dump(), settings.dump()));
    }
    read(path, settings);
  }
  folder_->write("rank.json", settings.dump(2) + "\n");
  std::string whole;
  for (const Json& line : known_) whole += line.dump() + "\n";
  folder_->write("scores.jsonl", whole);  // without a line that was cut
  out_.open(path, std::ios::app);
}

void ScoreFile::add(const Json& line) {
  if (!folder_) return;
  out_ << line.dump() << '\n' << std::flush;
  if (!out_) throw Error(ErrorKind::kIo, *folder_ / "scores.jsonl" + ": cannot be written");
}

void ScoreFile::read(const std::string& path, const Json& settings) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool is_whole = json.is_object() && !file.eof() && json.contains("name") &&
                          json["name"].is_string() && json.value("params", Json()).is_number() &&
                          json.value("macs", Json()).is_number() &&
                          json.value("seconds", Json()).is_object();
    if (!is_whole) break;
    const auto has = [&](const Json& proxy) { return json.contains(proxy.get<std::string>()); };
    const Json& proxies = settings.at("proxies");
    if (!std::all_of(proxies.begin(), proxies.end(), has)) break;
    known_.push_back(json);
  }
}

void ScoreFile::finish(const Json& result) const {
  if (!folder_) return;
  const auto write = [&](const char* name, const std::string& text) {
    AtomicFile file(*folder_ / name);
    file.write(text);
    file.commit();
  };
  write("result.json", result.dump(1) + "\n");
  write("report.html", report::rank_page(result));
}

}  // namespace adjoin::cli
