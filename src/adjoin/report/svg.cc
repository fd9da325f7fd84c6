#include "adjoin/report/svg.h"

#include <fmt/format.h>

#include <algorithm>

namespace adjoin::report {
namespace {

/// Scales of the points of some series.
struct Scales {
  Scale x;
  Scale y;
};

Scales scales(const Box& box, const std::vector<Series>& series, const Axis& x, const Axis& y) {
  Extent across, upward;
  for (const Series& one : series) {
    for (const auto& [px, py] : one.points) {
      across.add(px);
      upward.add(py);
    }
  }
  return {Scale::across(across, box, x), Scale::upward(upward, box, y)};
}

/// A skip beside the names of its blocks, which end at `right`: from below the one to above the
/// other. Longer ones reach further out.
std::string skip_arc(const Skip& skip, const std::vector<PlacedBlock>& blocks,
                     const std::vector<double>& rows, double right, size_t colour) {
  const auto from = static_cast<size_t>(skip.from), to = static_cast<size_t>(skip.to);
  if (from >= blocks.size() || to >= blocks.size() || rows[from] == 0 || rows[to] == 0) return "";
  constexpr double kLeast = 14, kMost = 62;  // of the handles: the arc goes three quarters as far
  const double start = rows[from] + 3, end = rows[to] - 3;
  const double out = right - std::clamp((end - start) * 0.35, kLeast, kMost);
  const std::string_view kind = enum_name(skip.kind);
  return fmt::format(
      R"(<path class="line skip c{0}"{1} d="M{2:.1f} {3:.1f} C{4:.1f} {3:.1f} {4:.1f} {5:.1f} {2:.1f} {5:.1f}"><title>{6}: {7} to {8}</title></path><path class="skip-end c{0}" d="M{2:.1f} {5:.1f} l-7 -3.5 v7 z"/>)",
      colour, skip.kind == SkipKind::kIdentity ? "" : R"( stroke-dasharray="5 4")", right, start,
      out, end, escaped(kind), escaped(blocks[from].name), escaped(blocks[to].name));
}

double share(int64_t part, int64_t all) {
  return static_cast<double>(part) / static_cast<double>(all);
}

std::string part_of(int64_t part, int64_t all) {
  return part == all ? std::to_string(all) : fmt::format("{} of {}", part, all);
}

constexpr double kBar = 12;  // the height of a bar

/// What there was in outline, in dashes where nothing is left of it, and what is left filled.
std::string outlined_bar(const std::pair<double, double>& corner, double outline,
                         std::optional<double> filled, const std::string& label, size_t colour) {
  std::string text = fmt::format(
      R"(<rect class="outline" x="{:.1f}" y="{}" width="{:.1f}" height="{}"{}/>)", corner.first,
      corner.second, outline, kBar, filled ? "" : " stroke-dasharray=\"3 3\"");
  if (filled) {
    text += fmt::format(R"(<rect class="fill c{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>)",
                        colour, corner.first, corner.second, *filled, kBar);
  }
  return text + fmt::format(R"(<text x="{:.1f}" y="{}">{}</text>)", corner.first + outline + 6,
                            corner.second + kBar - 2, label);
}

}  // namespace

std::string share_panels(const std::vector<Shares>& all) {
  constexpr double kPanelWidth = 150, kPanelHeight = 64, kHead = 18;
  std::string text;
  for (const Shares& shares : all) {
    const auto& values = shares.values;
    if (values.empty()) continue;
    const auto x = [&](size_t time) {
      return values.size() == 1
                 ? kPanelWidth * static_cast<double>(time)
                 : kPanelWidth * static_cast<double>(time) / static_cast<double>(values.size() - 1);
    };
    const size_t ends = std::max<size_t>(values.size(), 2);  // one value is as wide as many
    const auto at = [&](size_t time) -> const std::vector<double>& {
      return values[std::min(time, values.size() - 1)];
    };
    std::string areas;
    std::vector<double> below(ends, 0);
    for (size_t part = 0; part < shares.names.size(); ++part) {
      std::string lower, upper;
      for (size_t time = 0; time < ends; ++time) {
        const auto y = [&](double share) { return kHead + kPanelHeight * (1 - share); };
        lower.insert(0, fmt::format(" {:.1f},{:.1f}", x(time), y(below[time])));
        below[time] += at(time)[part];
        upper += fmt::format(" {:.1f},{:.1f}", x(time), y(below[time]));
      }
      const double shade = 0.95 - 0.8 * static_cast<double>(part) /
                                      static_cast<double>(std::max<size_t>(shares.names.size(), 2));
      areas += fmt::format(
          R"svg(<polygon class="part" fill-opacity="{:.2f}" points="{}{}"><title>{}: {:.0f} %</title></polygon>)svg",
          shade, upper, lower, escaped(shares.names[part]), 100 * at(ends - 1)[part]);
    }
    const auto& last = values.back();
    const auto largest =
        static_cast<size_t>(std::max_element(last.begin(), last.end()) - last.begin());
    text += fmt::format(
        R"svg(<svg class="panel" viewBox="0 0 {:.0f} {:.0f}" role="img"><text x="0" y="12">{}</text><text class="label" x="{:.0f}" y="12" text-anchor="end">{} {:.0f} %</text>{}</svg>)svg",
        kPanelWidth, kHead + kPanelHeight, escaped(shares.title), kPanelWidth,
        escaped(shares.names[largest]), 100 * last[largest], areas);
  }
  return text;
}

std::string line_chart(const std::vector<Series>& series, const Axis& x, const Axis& y) {
  const Box box;
  const auto [x_scale, y_scale] = scales(box, series, x, y);
  std::string text = frame(box, x_scale, y_scale, x, y);
  std::vector<double> ends;
  ends.reserve(series.size());
  for (const Series& one : series) {
    ends.push_back(one.points.empty() ? box.top : y_scale(one.points.back().second) + 4);
  }
  ends = apart(std::move(ends), box.base() + 4);
  for (size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    std::string path;
    for (const auto& [px, py] : series[i].points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_scale(px), y_scale(py));
    }
    const auto& [last_x, last_y] = series[i].points.back();
    text += fmt::format(
        R"(<path class="line c{0}" d="{1}"/><circle class="dot c{0}" cx="{2:.1f}" cy="{3:.1f}" r="3"/><text class="name c{0}" x="{4}" y="{5:.1f}">{6} {7:.2f}</text>)",
        i, path, x_scale(last_x), y_scale(last_y), box.end() + 8, ends[i], escaped(series[i].name),
        last_y);
  }
  return wrapped(text, box.width, box.height);
}

std::string scatter(const std::vector<Series>& series, size_t named, const Axis& x, const Axis& y) {
  const Box box;
  const auto [x_scale, y_scale] = scales(box, series, x, y);
  std::string text = frame(box, x_scale, y_scale, x, y);
  for (size_t i = series.size(); i-- > 0;) {  // this run's above the others
    const std::string colour = named == 0 ? "c0" : i < named ? fmt::format("c{}", i) : "other";
    for (const auto& [px, py] : series[i].points) {
      text += fmt::format(
          R"(<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}: {:.4g} at {}</title></circle>)",
          colour, x_scale(px), y_scale(py), i < named ? 5 : 4, escaped(series[i].name), py,
          tick_text(px, x.is_log));
      if (i < named) {
        text += fmt::format(R"(<text class="name {}" x="{:.1f}" y="{:.1f}">{}</text>)", colour,
                            x_scale(px) + 9, y_scale(py) + 4, escaped(series[i].name));
      }
    }
  }
  return wrapped(text, box.width, box.height);
}

std::string architecture(const ModelSpec& large, const ModelSpec& network, size_t colour) {
  constexpr double kRow = 20, kNames = 130, kNumber = 70, kLongNumber = 92, kNorm = 120;
  constexpr double kSpace = (640 - kNames - 2 * kNumber) / 2;
  constexpr double kNarrowLetter = 6.6, kArcs = 56;
  const std::vector<PlacedBlock> whole = placed_blocks(large);
  const std::vector<PlacedBlock> own = placed_blocks(network);
  int64_t heads = 1, hidden = 1;
  size_t longest = 0;
  for (const PlacedBlock& block : whole) {
    heads = std::max(heads, block.block->attention_dim());
    hidden = std::max(hidden, block.block->hidden);
    longest = std::max(longest, block.name.size());
  }
  // Skips are left of the names; where these are long, all else moves to the right.
  const double names = kNames - 16 - kNarrowLetter * static_cast<double>(longest);
  const double left = network.skips.empty() ? 0 : std::max(0.0, kArcs - names);
  const double first = left + kNames, second = first + kSpace + kNumber,
               third = second + kSpace + kLongNumber;
  std::string text = fmt::format(
      R"(<text class="label" x="{:.1f}" y="14">heads</text><text class="label" x="{:.1f}" y="14">hidden units</text>)",
      first, second);
  double y = 24;
  const auto bar = [&](double x, double outline, std::optional<double> filled,
                       const std::string& label) {
    if (filled) *filled *= kSpace;
    text += outlined_bar({x, y}, outline * kSpace, filled, label, colour);
  };
  std::vector<double> rows(own.size(), 0);  // of the blocks that are kept
  bool has_other_norm = false;
  for (const PlacedBlock& block : whole) {
    const auto kept = std::find_if(own.begin(), own.end(), [&](const PlacedBlock& candidate) {
      return candidate.block->origin == block.block->origin;
    });
    const bool is_kept = kept != own.end();
    if (is_kept) rows[static_cast<size_t>(kept - own.begin())] = y + kBar / 2;
    text += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="end">{}</text>)", first - 10,
                        y + kBar - 2, escaped(block.name));
    if (is_kept) {
      bar(first, share(block.block->attention_dim(), heads),
          share(kept->block->attention_dim(), heads),
          part_of(kept->block->heads, block.block->heads));
      bar(second, share(block.block->hidden, hidden), share(kept->block->hidden, hidden),
          part_of(kept->block->hidden, block.block->hidden));
    } else {
      bar(first, share(block.block->attention_dim(), heads), {}, "removed");
      bar(second, share(block.block->hidden, hidden), {}, "");
    }
    if (is_kept && kept->block->norm != block.block->norm) {
      has_other_norm = true;
      text += fmt::format(R"(<text class="name c{}" x="{:.1f}" y="{}">{}, was {}</text>)", colour,
                          third, y + kBar - 2, enum_name(kept->block->norm),
                          enum_name(block.block->norm));
    }
    y += kRow;
  }
  if (has_other_norm) {
    text += fmt::format(R"(<text class="label" x="{:.1f}" y="14">norm</text>)", third);
  }
  for (const Skip& skip : network.skips) text += skip_arc(skip, own, rows, left + names, colour);
  return wrapped(text, third + (has_other_norm ? kNorm : 0), y + 4);
}

}  // namespace adjoin::report
