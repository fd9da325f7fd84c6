#include "adjoin/report/page.h"

#include <fmt/format.h>

#include "adjoin/report/axes.h"

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
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 24px; }
.plots > div { display: flex; flex-direction: column; min-width: 0; break-inside: avoid; }
.plots svg { min-width: 0; max-width: 620px; margin-top: auto; padding-top: 8px; }
.cards + .sub { margin-top: 12px; }
.sub + .wide { margin-top: 8px; }
.wide + .sub { margin-top: 10px; }
.plots + .wide { margin-top: 14px; }
table.dense { font-size: 13px; }
.dense th, .dense td { padding: 4px 5px; }
.dense th { font-size: 12px; white-space: normal; vertical-align: bottom; }
.dense .words { text-align: left; white-space: normal; }
.tag { border: 1px solid var(--rule); border-radius: 3px; padding: 0 5px; font-size: 12px; color: var(--soft); white-space: nowrap; }
.broken { border-color: currentColor; color: #b3261e; }
svg { display: block; width: 100%; min-width: 480px; max-width: 760px; height: auto; font: 12px system-ui, "DejaVu Sans", sans-serif; }
svg text { fill: var(--soft); }
svg .label { font-weight: 600; }
svg .grid { stroke: var(--rule); }
svg .axis { stroke: var(--soft); }
svg .line { fill: none; stroke-width: 2; stroke: currentColor; }
svg .dot { fill: currentColor; stroke: var(--paper); }
svg .ring { fill: var(--paper); stroke: currentColor; }
svg .shaded { fill: currentColor; stroke: currentColor; stroke-width: .6; }
svg .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
svg .skip { stroke-width: 1.5; }
svg .skip-end { fill: currentColor; }
svg .spot { fill: transparent; }
svg .faint { fill: currentColor; opacity: .35; }
svg .band { fill: currentColor; opacity: .13; }
svg .small { font-size: 9.5px; }
svg .name { fill: currentColor; font-weight: 600; }
svg .outline { fill: none; stroke: #aeb7c2; }
svg .fill { fill: currentColor; opacity: .85; }
svg .other { color: #b4bcc7; }
svg .part { fill: #14396b; stroke: var(--paper); stroke-width: .5; }
.panels { margin-top: 12px; display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 16px; }
svg.panel { min-width: 0; max-width: 220px; }
.panels.large { grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); }
.large svg.panel { max-width: 300px; }
details { margin-top: 18px; }
summary { cursor: pointer; font-weight: 600; }
sup { line-height: 0; font-size: 10px; padding-left: 1px; }
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
@media print { body { max-width: none; padding: 0; } .card, pre, .problems { border: 1px solid var(--rule); } h2, h3 { break-after: avoid; } svg, tr, .card { break-inside: avoid; } .wide { overflow: visible; } svg { min-width: 0; } .pair { grid-template-columns: 1fr; } pre { columns: 2; } table.dense, .dense th, .tag { font-size: 9px; } .dense th, .dense td { padding: 2px 3px; } }
)css";

}  // namespace

std::string page(const std::string& title, const std::string& body, const std::string& footer) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<link rel=\"icon\" href=\"data:,\"><title>{}</title><style>{}</style></head>\n<body>{}"
      "<footer>{}</footer></body></html>\n",
      escaped(title), kStyle, body, escaped(footer));
}

}  // namespace adjoin::report
