"""The page around the sections: style for wide and narrow screens, light and dark, and the sorting of tables.

Nothing is fetched: the page is one file that can be mailed.
"""

from __future__ import annotations

from collections.abc import Iterable

from eclose.report.markup import Markup, element, joined, safe

STYLE = """
:root { color-scheme: light dark; --ground: #fbfaf8; --card: #ffffff; --ink: #22252b; --soft: #6a707c;
  --line: #e3e1dc; --accent: #0f6e84; --second: #c2571a; --third: #6b4fa0; --faint: #0f6e8418; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ground: #14161a; --card: #1c1f25; --ink: #e6e6e3; --soft: #9aa1ad;
  --line: #333842; --accent: #58b7cd; --second: #f0985c; --third: #b29be0; --faint: #58b7cd22; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 .8rem; } h3 { font-size: 1rem; margin: 1.1rem 0 .3rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); } .bad { color: var(--bad); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.1rem 1.2rem;
  margin: 1.1rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem; margin-top: 1rem; }
.figure { border-left: 3px solid var(--accent); padding: .1rem .8rem; }
.figure b { display: block; font-size: 1.45rem; font-variant-numeric: tabular-nums; line-height: 1.3; }
.figure span { color: var(--soft); font-size: .85rem; }
pre, code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .86rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--ground); border: 1px solid var(--line);
  border-radius: 6px; padding: .7rem .9rem; margin: .6rem 0 0; max-height: 24rem; overflow: auto; }
.scroll { overflow-x: auto; }
.drawing { overflow: auto; max-height: 46rem; } .drawing svg { max-width: 100%; height: auto; display: block;
  margin: 0 auto; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; }
.charts svg { width: 100%; height: auto; display: block; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.2rem, 1fr)); gap: .7rem .8rem; }
.panels svg { width: 100%; height: auto; display: block; }
.key { display: inline-block; margin-right: 1rem; font-size: .85rem; color: var(--soft); }
.key i { display: inline-block; width: .7rem; height: .7rem; border-radius: 2px; margin-right: .35rem; }
.chart text { fill: var(--soft); font: 12px system-ui, sans-serif; } .chart .label { fill: var(--ink); }
.chart .grid { stroke: var(--line); stroke-width: 1; } .chart .axis { stroke: var(--soft); stroke-width: 1; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .32rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; cursor: pointer; white-space: nowrap; }
td code { overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td code { white-space: pre-wrap; display: inline-block; min-width: 16rem; }
dl { margin: 0; display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: .15rem 1.6rem; }
dl div { display: flex; gap: .8rem; border-bottom: 1px solid var(--line); padding: .25rem 0; }
dt { color: var(--soft); flex: 0 0 9.5rem; overflow-wrap: anywhere; }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
summary { cursor: pointer; color: var(--accent); }
@media (max-width: 34rem) { main { padding: .8rem .6rem 3rem; } section { padding: .9rem .8rem; }
  dt { flex-basis: 7rem; } .drawing svg { max-width: none; width: 46rem; } }
@media print { section { break-inside: avoid; } pre, .drawing { max-height: none; } }
"""

SCRIPT = """
document.querySelectorAll('table.sortable th').forEach(function (head) {
  head.addEventListener('click', function () {
    var table = head.closest('table'), body = table.tBodies[0], column = head.cellIndex;
    var falling = head.dataset.order !== 'falling';
    table.querySelectorAll('th').forEach(function (other) { delete other.dataset.order; });
    head.dataset.order = falling ? 'falling' : 'rising';
    var value = function (row) {
      var text = row.cells[column].textContent.trim(), number = parseFloat(text.replace(/[,\\u202f]/g, ''));
      return isNaN(number) ? text : number;
    };
    Array.from(body.rows).sort(function (a, b) {
      var x = value(a), y = value(b);
      var order = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === 'number' ? -1 : 1;
      return falling ? -order : order;
    }).forEach(function (row) { body.appendChild(row); });
  });
});
"""


def page(title: str, lead: Markup, sections: Iterable[tuple[str, Markup]]) -> str:
    """Return a whole page.

    Args:
        title: its title.
        lead: what stands above the sections.
        sections: headings with their content.
    """
    body = joined(element("section", element("h2", heading), content) for heading, content in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{safe(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{lead}{body}</main><script>{SCRIPT}</script></body></html>\n"
    )


__all__ = ["page"]
