#include "adjoin/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/progress_line.h"
#include "adjoin/core/table.h"
#include "adjoin/report/inspect_section.h"
#include "adjoin/report/page.h"
#include "adjoin/report/search_section.h"
#include "adjoin/report/svg.h"

namespace adjoin::report {
namespace {

/// Networks beyond the colours of the page share the last one.
size_t colour(size_t network) { return std::min<size_t>(network, 7); }

std::string percent(std::optional<double> value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

std::string times(double ratio) { return fmt::format("{:.2f}x", ratio); }

double ratio(int64_t large, int64_t small) {
  return static_cast<double>(large) / static_cast<double>(small);
}

/// How far a network's accuracy is from the large one's, in words.
std::string distance(const NetworkView& large, const NetworkView& network) {
  if (!large.top1() || !network.top1()) return "";
  return fmt::format("{:+.2f} points", *network.top1() - *large.top1());
}

std::string counts_beside(const NetworkView& network) {
  if (network.macs == 0) return "";
  return fmt::format("<span>{} parameters</span><span>{} MACs</span>",
                     short_count(static_cast<double>(network.params)),
                     short_count(static_cast<double>(network.macs)));
}

/// What a small network has that the large one has not, and the other way round.
std::string comparison(const NetworkView& large, const NetworkView& network) {
  std::string text = "<span>" + distance(large, network) + " to the large network</span>";
  if (large.macs > 0 && network.macs > 0) {
    text += fmt::format("<span>{} fewer MACs</span>", times(ratio(large.macs, network.macs)));
  }
  if (large.latency_ms && network.latency_ms) {
    text += fmt::format("<span>{} faster on a CPU</span>",
                        times(*large.latency_ms / *network.latency_ms));
  }
  return text;
}

std::string card(const NetworkView& network, const std::string& look, const std::string& beside) {
  return fmt::format("<div class=\"card{}\"><span>{}</span><b>{} %</b><span>top-1</span>{}</div>",
                     look, escaped(network.name), percent(network.top1()), beside);
}

std::string cards(const RunView& run) {
  std::string text = "<div class=\"cards\">";
  if (run.teacher) text += card(*run.teacher, "", counts_beside(*run.teacher));
  for (size_t i = 0; i < run.networks.size(); ++i) {
    const NetworkView& network = run.networks[i];
    const bool is_large = &network == &run.large();
    text += card(network, fmt::format(" c{}", colour(i)),
                 is_large ? counts_beside(network) : comparison(run.large(), network));
  }
  return text + "</div>";
}

std::string row(const NetworkView& large, const NetworkView& n, const std::string& look) {
  std::optional<double> best;
  for (const Point& point : n.points) best = std::max(best.value_or(point.top1), point.top1);
  const auto count = [](int64_t value) { return value > 0 ? with_commas(value) : "-"; };
  return fmt::format(
      "<tr><td><b{}>{}</b></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td>{}</td><td>{}</td><td>{}</td></tr>",
      look, escaped(n.name), percent(n.top1()), percent(best),
      n.points.empty() ? "-" : fmt::format("{:.3f}", n.points.back().loss), count(n.params),
      count(n.macs),
      n.macs > 0 && large.macs > 0 ? fmt::format("{:.3f}", 1 / ratio(large.macs, n.macs)) : "-",
      n.file.empty() ? "-" : short_bytes(static_cast<double>(n.file_bytes)),
      n.latency_ms ? fmt::format("{:.2f}", *n.latency_ms) : "-");
}

std::string table(const RunView& run) {
  std::string text =
      "<div class=\"wide\"><table><tr><th>network</th><th>top-1 %</th><th>best %</th><th>loss</th>"
      "<th>parameters</th><th>MACs</th><th>of large</th><th>file</th><th>CPU ms</th></tr>";
  if (run.teacher) text += row(run.large(), *run.teacher, "");
  for (size_t i = 0; i < run.networks.size(); ++i) {
    text += row(run.large(), run.networks[i], fmt::format(" class=\"c{}\"", colour(i)));
  }
  return text + "</table></div>";
}

/// Nothing of networks that were judged once.
std::string curves(const RunView& run) {
  const bool has_lines = std::any_of(run.networks.begin(), run.networks.end(),
                                     [](const NetworkView& one) { return one.points.size() > 1; });
  if (!has_lines) return "";
  const Axis epochs{"epoch", false, 0, /*is_whole=*/true};
  std::vector<Series> accuracy, loss;
  for (const NetworkView& network : run.networks) {
    Series tops{network.name, {}}, losses{network.name, {}};
    for (const Point& point : network.points) {
      const auto epoch = static_cast<double>(point.epoch + 1);
      tops.points.emplace_back(epoch, point.top1);
      losses.points.emplace_back(epoch, point.loss);
    }
    accuracy.push_back(std::move(tops));
    loss.push_back(std::move(losses));
  }
  return "<h2>While training</h2><div class=\"pair\"><div class=\"wide\">" +
         line_chart(accuracy, epochs, {"top-1 %, validation", false, 0.5}) +
         "</div><div class=\"wide\">" + line_chart(loss, epochs, {"loss, validation"}) +
         "</div></div>";
}

std::string inspections(const RunView& run) {
  const std::string inside = inspect_section(run.inspections, run.networks);
  return inside.empty() ? "" : "<h2>Inside the network</h2>" + inside;
}

std::string architectures(const RunView& run) {
  const NetworkView& large = run.networks.front();
  if (!large.spec || run.teacher) return "";  // what was taught is drawn where it was found
  std::string text = "<h2>Architecture</h2>";
  for (size_t i = run.networks.size() > 1 ? 1 : 0; i < run.networks.size(); ++i) {
    const NetworkView& network = run.networks[i];
    if (!network.spec) continue;
    text += fmt::format("<h3 class=\"c{}\">{}</h3><div class=\"wide\">{}</div>", colour(i),
                        escaped(network.name), architecture(*large.spec, *network.spec, colour(i)));
  }
  return text;
}

std::string neighbours(const RunView& run, const std::vector<RunView>& others) {
  std::vector<Series> series;
  const auto add = [&](const RunView& view, const std::string& prefix) {
    for (const NetworkView& network : view.networks) {
      if (network.macs == 0 || !network.top1()) continue;
      series.push_back(
          {prefix + network.name, {{static_cast<double>(network.macs), *network.top1()}}});
    }
  };
  add(run, "");
  if (run.teacher && run.teacher->macs > 0) {
    series.push_back(
        {run.teacher->name, {{static_cast<double>(run.teacher->macs), *run.teacher->top1()}}});
  }
  const size_t named = series.size();
  if (named == 0) return "";
  for (const RunView& other : others) {
    // Another task is no comparison.
    if (other.setting("data") != run.setting("data")) continue;
    add(other, other.folder.substr(other.folder.rfind('/') + 1) + " ");
  }
  return "<h2>Accuracy against MACs</h2><div class=\"wide\">" +
         scatter(series, named, {"MACs of one image", /*is_log=*/true},
                 {"top-1 %, validation", false, 0.5}) +
         "</div>" +
         (series.size() > named
              ? fmt::format("<p class=\"sub\">Grey: other runs in the same folder, on the same "
                            "data.</p>")
              : "");
}

/// A cell with a bar behind its number.
std::string share_cell(double value, size_t network) {
  return fmt::format(
      "<td class=\"share c{}\"><i style=\"width:{:.0f}%\"></i><span>{:.1f}</span></td>",
      colour(network), value, value);
}

/// All classes; of many, those that the last network loses most on.
std::string classes(const RunView& run) {
  constexpr size_t kMost = 24;
  std::vector<ClassView> shown = run.classes;
  std::erase_if(shown, [](const ClassView& one) { return one.images == 0; });
  if (shown.empty()) return "";
  const bool is_cut = shown.size() > kMost;
  if (is_cut) {
    std::stable_sort(shown.begin(), shown.end(), [](const ClassView& a, const ClassView& b) {
      return a.top1.back() - a.top1.front() < b.top1.back() - b.top1.front();
    });
    shown.resize(kMost);
  }
  std::string text = fmt::format(
      "<h2>Class by class</h2>{}<div class=\"wide\"><table><tr><th>class</th><th>images</th>",
      is_cut ? fmt::format("<p class=\"sub\">The {} of {} classes on which {} loses most.</p>",
                           kMost, run.classes.size(), escaped(run.networks.back().name))
             : "");
  for (const NetworkView& network : run.networks)
    text += "<th>" + escaped(network.name) + " %</th>";
  text += "</tr>";
  for (const ClassView& one : shown) {
    text += fmt::format("<tr><td>{}</td><td>{}</td>", escaped(one.name), with_commas(one.images));
    for (size_t i = 0; i < one.top1.size(); ++i) text += share_cell(one.top1[i], i);
    text += "</tr>";
  }
  return text + "</table></div>";
}

std::string samples(const RunView& run) {
  if (run.samples.empty()) return "";
  std::string text = "<h2>Some images</h2><div class=\"samples\">";
  for (const Sample& sample : run.samples) {
    text += fmt::format("<figure><img src=\"{}\" alt=\"{}\"><figcaption><b>{}</b>", sample.picture,
                        escaped(sample.label), escaped(sample.label));
    for (size_t i = 0; i < sample.answers.size(); ++i) {
      const Answer& answer = sample.answers[i];
      text += fmt::format("<span class=\"c{}\">{} {}: {} {:.0f} %</span>", colour(i),
                          answer.is_right ? "✓" : "✗", escaped(run.networks[i].name),
                          escaped(answer.label), 100 * answer.probability);
    }
    text += "</figcaption></figure>";
  }
  return text + "</div>";
}

std::string settings(const RunView& run) {
  if (run.config_text.empty()) return "";
  return fmt::format(
      "<h2>To repeat it</h2><pre>adjoin {} --config {}/config.yaml --output NEW_FOLDER</pre>"
      "<h2>Settings</h2><pre>{}</pre>",
      run.verb, escaped(run.folder), escaped(run.config_text));
}

std::string problems(const RunView& run) {
  if (run.problems.empty()) return "";
  std::string text = "<div class=\"problems\">";
  for (const std::string& problem : run.problems) text += "<p>" + escaped(problem) + "</p>";
  return text + "</div>";
}

std::string title(const RunView& run) {
  std::string model = run.setting("model");
  if (model.empty()) model = run.setting("from");
  if (model.empty()) model = run.folder;
  const char* const doing = run.verb == "compress" ? "Compressing"
                            : run.verb == "search" ? "Searching"
                                                   : "Training";
  return fmt::format("{} {}", doing, model);
}

/// How long the training took, and everything before it where that is known.
std::string times(const RunView& run) {
  std::string text = run.seconds > 0 ? ", " + short_duration(run.seconds) : "";
  if (run.verb != "search" || run.whole_seconds <= run.seconds) return text;
  const std::string whole = short_duration(run.whole_seconds);
  return text.empty() ? fmt::format(", {} in all", whole)
                      : fmt::format("{}; {} with the search before it", text, whole);
}

}  // namespace

std::string html_report(const RunView& run, const std::vector<RunView>& others,
                        const std::optional<SearchView>& search) {
  std::string body = fmt::format(
      "<h1>{}</h1><p class=\"sub\">{} on {}{}</p>", escaped(title(run)),
      so_many(run.epochs, "epoch"),
      escaped(run.setting("data").empty() ? "unknown data" : run.setting("data")), times(run));
  if (!run.is_empty()) body += cards(run);
  body += problems(run);
  if (!run.is_empty()) {
    body += "<h2>Networks</h2>" + table(run);
    body += curves(run);
    body += inspections(run);
    body += architectures(run);
  }
  if (search) body += search_section(*search);
  if (!run.is_empty()) {
    body += neighbours(run, others);
    body += classes(run);
    body += samples(run);
  }
  body += settings(run);
  return page(title(run), body,
              fmt::format("Made by adjoin report from the run folder {}.", run.folder));
}

Report write_report(const std::string& folder) {
  RunView run = read_run(folder);
  const std::optional<SearchView> search = read_search(run, run.problems);
  std::vector<RunView> others;
  for (const std::string& other : runs_beside(folder)) {
    try {
      others.push_back(read_run(other));
    } catch (const Error&) {  // it was removed meanwhile
    }
  }
  std::string path = folder + "/report.html";
  AtomicFile file(path);
  file.write(html_report(run, others, search));
  file.commit();
  return {path, run.problems};
}

}  // namespace adjoin::report
