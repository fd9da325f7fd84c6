#include "adjoin/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/progress_line.h"
#include "adjoin/core/table.h"
#include "adjoin/report/search_section.h"
#include "adjoin/report/svg.h"

namespace adjoin::report {
namespace {

// The first two colours differ in lightness, too: on grey paper and for eyes that see fewer.
constexpr std::string_view kStyle = R"css(
:root { --ink: #1b2330; --soft: #5b6675; --rule: #d9dee5; --paper: #ffffff; --card: #f5f7fa; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 28px 20px 60px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 10px; }
h3 { font-size: 15px; margin: 18px 0 6px; }
.sub { color: var(--soft); margin: 0; overflow-wrap: anywhere; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 22px 0 0; }
.card { background: var(--card); border-left: 4px solid currentColor; border-radius: 4px; padding: 10px 16px; min-width: 150px; flex: 1 1 150px; }
.card b { display: block; font-size: 25px; line-height: 1.25; }
.card span { color: var(--soft); font-size: 13px; display: block; }
.problems { background: #fff6e5; border-left: 4px solid #d98a00; padding: 10px 16px; margin: 20px 0 0; }
.problems p { margin: 2px 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: 13px; }
th:first-child, td:first-child { text-align: left; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 24px; }
svg { display: block; width: 100%; min-width: 480px; max-width: 760px; height: auto; font: 12px system-ui, "DejaVu Sans", sans-serif; }
svg text { fill: var(--soft); }
svg .label { font-weight: 600; }
svg .grid { stroke: var(--rule); }
svg .axis { stroke: var(--soft); }
svg .line { fill: none; stroke-width: 2; stroke: currentColor; }
svg .dot { fill: currentColor; stroke: var(--paper); }
svg .name { fill: currentColor; font-weight: 600; }
svg .outline { fill: none; stroke: #aeb7c2; }
svg .fill { fill: currentColor; opacity: .85; }
svg .other { color: #b4bcc7; }
svg .part { fill: #14396b; stroke: var(--paper); stroke-width: .5; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 16px; }
svg.panel { min-width: 0; max-width: 220px; }
.c0 { color: #14396b; } .c1 { color: #e0702b; } .c2 { color: #2a8f6d; } .c3 { color: #8b4fb3; }
.c4 { color: #b8860b; } .c5 { color: #c43d5c; } .c6 { color: #3a7fc4; } .c7 { color: #6b6b3a; }
pre { background: var(--card); border-radius: 4px; padding: 12px 16px; overflow-x: auto; font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; margin: 0; }
.share { position: relative; min-width: 90px; }
.share i { position: absolute; left: 0; top: 5px; bottom: 5px; background: currentColor; opacity: .16; }
.share span { position: relative; color: var(--ink); }
.samples { display: grid; grid-template-columns: repeat(auto-fill, minmax(165px, 1fr)); gap: 18px; }
figure { margin: 0; break-inside: avoid; }
figure img { width: 96px; height: 96px; image-rendering: pixelated; border-radius: 4px; display: block; }
figcaption b, figcaption span { display: block; font-size: 13px; line-height: 1.4; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 13px; margin-top: 40px; }
@media print { body { max-width: none; padding: 0; } .card, pre, .problems { border: 1px solid var(--rule); } h2 { break-after: avoid; } svg, tr, .card { break-inside: avoid; } .wide { overflow: visible; } svg { min-width: 0; } .pair { grid-template-columns: 1fr; } pre { columns: 2; } }
)css";

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

std::string cards(const RunView& run) {
  std::string text = "<div class=\"cards\">";
  const NetworkView& large = run.networks.front();
  for (size_t i = 0; i < run.networks.size(); ++i) {
    const NetworkView& network = run.networks[i];
    std::string beside;
    if (i > 0) {
      beside += "<span>" + distance(large, network) + " to the large network</span>";
      if (large.macs > 0 && network.macs > 0) {
        beside += fmt::format("<span>{} fewer MACs</span>", times(ratio(large.macs, network.macs)));
      }
      if (large.latency_ms && network.latency_ms) {
        beside += fmt::format("<span>{} faster on a CPU</span>",
                              times(*large.latency_ms / *network.latency_ms));
      }
    } else if (network.macs > 0) {
      beside = fmt::format("<span>{} parameters</span><span>{} MACs</span>",
                           short_count(static_cast<double>(network.params)),
                           short_count(static_cast<double>(network.macs)));
    }
    text +=
        fmt::format("<div class=\"card c{}\"><span>{}</span><b>{} %</b><span>top-1</span>{}</div>",
                    colour(i), escaped(network.name), percent(network.top1()), beside);
  }
  return text + "</div>";
}

std::string table(const RunView& run) {
  std::string text =
      "<div class=\"wide\"><table><tr><th>network</th><th>top-1 %</th><th>best %</th><th>loss</th>"
      "<th>parameters</th><th>MACs</th><th>of large</th><th>file</th><th>CPU ms</th></tr>";
  const NetworkView& large = run.networks.front();
  for (size_t i = 0; i < run.networks.size(); ++i) {
    const NetworkView& n = run.networks[i];
    std::optional<double> best;
    for (const Point& point : n.points) best = std::max(best.value_or(point.top1), point.top1);
    const auto count = [](int64_t value) { return value > 0 ? with_commas(value) : "-"; };
    text += fmt::format(
        "<tr><td><b "
        "class=\"c{}\">{}</b></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td></tr>",
        colour(i), escaped(n.name), percent(n.top1()), percent(best),
        n.points.empty() ? "-" : fmt::format("{:.3f}", n.points.back().loss), count(n.params),
        count(n.macs),
        n.macs > 0 && large.macs > 0 ? fmt::format("{:.3f}", 1 / ratio(large.macs, n.macs)) : "-",
        n.file.empty() ? "-" : short_bytes(static_cast<double>(n.file_bytes)),
        n.latency_ms ? fmt::format("{:.2f}", *n.latency_ms) : "-");
  }
  return text + "</table></div>";
}

std::string curves(const RunView& run) {
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
  return "<div class=\"pair\"><div class=\"wide\">" +
         line_chart(accuracy, {"epoch"}, {"top-1 %, validation"}) + "</div><div class=\"wide\">" +
         line_chart(loss, {"epoch"}, {"loss, validation"}) + "</div></div>";
}

std::string architectures(const RunView& run) {
  const NetworkView& large = run.networks.front();
  if (!large.spec) return "";
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
  const size_t named = series.size();
  if (named == 0) return "";
  for (const RunView& other : others) {
    // Another task is no comparison.
    if (other.setting("data") != run.setting("data")) continue;
    add(other, other.folder.substr(other.folder.rfind('/') + 1) + " ");
  }
  return "<h2>Accuracy against MACs</h2><div class=\"wide\">" +
         scatter(series, named, {"MACs of one image", /*is_log=*/true}, {"top-1 %, validation"}) +
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

}  // namespace

std::string html_report(const RunView& run, const std::vector<RunView>& others,
                        const std::optional<SearchView>& search) {
  std::string body = fmt::format(
      "<h1>{}</h1><p class=\"sub\">{} epochs on {}{}</p>", escaped(title(run)), run.epochs,
      escaped(run.setting("data").empty() ? "unknown data" : run.setting("data")),
      run.seconds > 0 ? ", " + short_duration(run.seconds) : "");
  if (!run.is_empty()) body += cards(run);
  body += problems(run);
  if (!run.is_empty()) {
    body += "<h2>Networks</h2>" + table(run);
    body += "<h2>While training</h2>" + curves(run);
    body += architectures(run);
  }
  if (search) body += search_section(*search);
  if (!run.is_empty()) {
    body += neighbours(run, others);
    body += classes(run);
    body += samples(run);
  }
  body += settings(run);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<link rel=\"icon\" href=\"data:,\"><title>{}</title><style>{}</style></head>\n<body>{}"
      "<footer>Made by adjoin report from the run folder {}.</footer></body></html>\n",
      escaped(title(run)), kStyle, body, escaped(run.folder));
}

std::string write_report(const std::string& folder) {
  RunView run = read_run(folder);
  const std::optional<SearchView> search = read_search(run, run.problems);
  std::vector<RunView> others;
  for (const std::string& other : runs_beside(folder)) others.push_back(read_run(other));
  std::string path = folder + "/report.html";
  AtomicFile file(path);
  file.write(html_report(run, others, search));
  file.commit();
  return path;
}

}  // namespace adjoin::report
