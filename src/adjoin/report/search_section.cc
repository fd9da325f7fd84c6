#include "adjoin/report/search_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "adjoin/core/table.h"
#include "adjoin/report/inspect_section.h"
#include "adjoin/report/study_section.h"
#include "adjoin/report/svg.h"

namespace adjoin::report {
namespace {

std::string count(int64_t value) { return value > 0 ? with_commas(value) : "-"; }

std::string table(const std::vector<NetworkView>& networks, bool is_coloured) {
  std::string text =
      "<div class=\"wide\"><table><tr><th>network</th><th>top-1 %</th><th>parameters</th>"
      "<th>MACs</th></tr>";
  for (size_t i = 0; i < networks.size(); ++i) {
    const NetworkView& network = networks[i];
    text += fmt::format("<tr><td><b{}>{}</b></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                        is_coloured ? fmt::format(" class=\"c{}\"", i) : "", escaped(network.name),
                        network.top1() ? fmt::format("{:.2f}", *network.top1()) : "-",
                        count(network.params), count(network.macs));
  }
  return text + "</table></div>";
}

std::string curves(const SearchView& search) {
  std::vector<Series> accuracy;
  for (const NetworkView& network : search.networks) {
    Series series{network.name, {}};
    for (const Point& point : network.points) {
      series.points.emplace_back(static_cast<double>(point.epoch + 1), point.top1);
    }
    accuracy.push_back(std::move(series));
  }
  Series expected{"expected", {}};
  for (const auto& [epoch, macs] : search.expected_macs) {
    expected.points.emplace_back(static_cast<double>(epoch + 1), macs / 1e6);
  }
  return "<div class=\"pair\"><div class=\"wide\">" +
         line_chart(accuracy, {"epoch"}, {"top-1 %, images set aside", false, 0.5}) +
         "</div><div class=\"wide\">" +
         line_chart({expected}, {"epoch"}, {"million MACs of a pick, on average"}) + "</div></div>";
}

std::string mixture(const SearchView& search) {
  std::vector<Shares> blocks;
  constexpr size_t kMostShown = 64;
  for (size_t i = 0; i < std::min(search.blocks.size(), kMostShown); ++i) {
    Shares shares{fmt::format("block {}", i), {}, search.blocks[i].probabilities};
    for (const int64_t alpha : search.blocks[i].alphas) {
      shares.names.push_back(fmt::format("1/{}", alpha));
    }
    blocks.push_back(std::move(shares));
  }
  return "<h3>How likely each share of a block is, over the epochs</h3><p class=\"sub\">Dark: the "
         "whole block; the lighter, the less of it.</p><div class=\"panels\">" +
         share_panels(blocks) + "</div>";
}

}  // namespace

std::string search_section(const SearchView& search) {
  std::string text = "<h2>The search</h2>";
  if (search.study) text += study_section(*search.study);
  if (!search.networks.empty()) {
    text +=
        "<p class=\"sub\">On training images that were set aside, with the weights of the "
        "search.</p>" +
        table(search.networks, true) + curves(search) + mixture(search);
    const std::string inside = inspect_section(search.inspections, search.networks);
    if (!inside.empty()) text += "<h3>Inside the networks of the search</h3>" + inside;
  }
  const bool is_drawn = search.study && search.study->drawn;
  if (search.found && !is_drawn) {
    text += "<h3>What was found</h3><div class=\"wide\">" +
            architecture(search.found->first, search.found->second, 1) + "</div>";
  }
  if (!search.trials.empty()) {
    text += fmt::format("<p class=\"sub\">{} networks were tried.</p>", search.trials.size()) +
            table(search.trials, false);
  }
  return text;
}

}  // namespace adjoin::report
