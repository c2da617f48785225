#!/usr/bin/env python3
"""Draws docs/images/happens_before.svg: the accesses of 06_tma/released_too_early.hpp, and which of them are ordered.

    picture.py OUT.svg

Time runs downwards; an arrow is an edge of the happens-before relation, and two accesses are ordered where a path of
arrows leads from one to the other.
"""

import pathlib
import sys

STYLE = (
    "text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1c2733}"
    ".head{font-weight:bold}.note{fill:#5b6875;font-size:11px}.race{fill:#b3261e;font-weight:bold}"
    ".life{stroke:#d5dbe1}.step{fill:#eef2f6;stroke:#5b6875}.access{fill:#dcebfa;stroke:#2f6fb0}"
    ".edge{stroke:#2f6fb0;fill:none;stroke-width:1.6}.conflict{stroke:#b3261e;fill:none;stroke-width:2;stroke-dasharray:6 4}"
)
COLUMNS = {"producer": ("thread 0, producer", 110), "tma": ("TMA, async proxy", 300), "barriers": ("mbarriers", 470), "consumer": ("warp 1, consumer", 650)}
WIDTH, ROW, TOP, BOX = 150, 46, 60, 26

# (name, column, row, text, class): what happens, in each panel the same but for the consumer's
# last two.
FIRST = [
    ("issue", "producer", 0, "tma_load, round 0", "step"),
    ("write", "tma", 0.8, "writes stage 0", "access"),
    ("full", "barriers", 1.6, "full: phase 0", "step"),
    ("wait", "consumer", 2.4, "waits for full", "step"),
]
AFTER = [
    ("waited", "producer", 5.6, "waits for empty", "step"),
    ("again", "producer", 6.4, "tma_load, round 1", "step"),
    ("rewrite", "tma", 7.2, "writes stage 0", "access"),
]
# (from, to, what makes it so)
EDGES = [
    ("issue", "write", "issue"),
    ("write", "full", "complete_tx"),
    ("full", "wait", "acquire"),
    ("arrive", "empty", "release"),
    ("empty", "waited", "acquire"),
    ("waited", "again", ""),
    ("again", "rewrite", "issue"),
]
PANELS = [
    ("repaired: ld.shared, then mbarrier_arrive", [("read", 3.2), ("arrive", 4.0)], 4.8, [("wait", "read", ""), ("read", "arrive", "")], None),
    ("broken: mbarrier_arrive, then ld.shared", [("arrive", 3.2), ("read", 4.4)], 4.0, [("wait", "arrive", ""), ("arrive", "read", "")], ("read", "rewrite")),
]
TEXTS = {"read": ("reads stage 0", "access"), "arrive": ("arrives at empty", "step")}


def panel(title, consumer, empty_row, order, conflict, left):
    out = [f'<text class="head" x="{left + 24}" y="22">{title}</text>']
    bottom = TOP + 8.2 * ROW
    for text, x in COLUMNS.values():
        out.append(f'<text class="note" text-anchor="middle" x="{left + x}" y="46">{text}</text>')
        out.append(f'<line class="life" x1="{left + x}" y1="{TOP - 6}" x2="{left + x}" y2="{bottom}"/>')
    nodes = [*FIRST, *((name, "consumer", row, *TEXTS[name]) for name, row in consumer), ("empty", "barriers", empty_row, "empty: phase 0", "step"), *AFTER]
    places = {name: (left + COLUMNS[column][1], TOP + 14 + row * ROW) for name, column, row, _, _ in nodes}

    def line(begin, end, kind):
        (x1, y1), (x2, y2) = places[begin], places[end]
        if x1 == x2:
            y1, y2 = y1 + BOX / 2, y2 - BOX / 2
        else:
            side = 1 if x2 > x1 else -1
            x1, x2 = x1 + side * WIDTH / 2, x2 - side * WIDTH / 2
        return f'<line class="{kind}" marker-end="url(#{kind})" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'

    for begin, end, label in EDGES + order:
        out.append(line(begin, end, "edge"))
        (x1, y1), (x2, y2) = places[begin], places[end]
        middle, towards = (x1 + x2) / 2, 10 if x2 > x1 else -10
        anchor = "start" if x2 > x1 else "end"
        out.append(f'<text class="note" text-anchor="{anchor}" x="{middle + towards}" y="{(y1 + y2) / 2 - 5}">{label}</text>')
    if conflict:
        out.append(line(*conflict, "conflict"))
        out.append(f'<text class="race" text-anchor="middle" x="{left + 500}" y="{TOP + 7.35 * ROW}">no path: a race</text>')
    for name, _, _, text, kind in nodes:
        x, y = places[name]
        out.append(f'<rect class="{kind}" rx="5" x="{x - WIDTH / 2}" y="{y - BOX / 2}" width="{WIDTH}" height="{BOX}"/>')
        out.append(f'<text text-anchor="middle" x="{x}" y="{y + 4}">{text}</text>')
    return out


def main():
    half, height = 760, int(TOP + 8.4 * ROW)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{half}" height="{2 * height}" viewBox="0 0 {half} {2 * height}">', f"<style>{STYLE}</style>"]
    out.append("<defs>")
    for kind, colour in (("edge", "#2f6fb0"), ("conflict", "#b3261e")):
        out.append(f'<marker id="{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>')
    out.append('</defs><rect width="100%" height="100%" fill="#fff"/>')
    for index, contents in enumerate(PANELS):
        out += [f'<g transform="translate(0,{index * height})">', *panel(*contents, 0), "</g>"]
    out.append("</svg>")
    pathlib.Path(sys.argv[1]).write_text("\n".join(out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
