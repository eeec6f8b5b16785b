#!/usr/bin/env python3
"""Draws the figures of `../how-it-measures.md` from measured data.

    draw.py LOG [DATE]   from what `cargo bench -p gpu-time-accuracy` printed: accuracy.csv, and the figures
    draw.py              the figures, from the CSV files as they are
    draw.py --check      compares them with what is checked in

A log of `bundle/run.sh` has a date in it, DATE is for one that has none. `accuracy.csv` is never edited
by hand. `cold.csv` has what was measured before the bench existed, and is not made by a command.
"""

import csv
import math
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The columns of accuracy.csv: times in microseconds, medians unless said, empty where there is none.
# `ncu_us` is less the 0.7 µs that ncu adds to every kernel, as the bench says it.
COLUMNS = (
    "case ours_us ours_p5_us ours_p95_us truth_us truth_p5_us truth_p95_us raw_us bound_us "
    "ncu_us torch_events_us do_bench_us nvbench_us"
).split()
TOOLS = {
    "by torch events": "torch_events_us",
    "by do_bench": "do_bench_us",
    "by NVBench": "nvbench_us",
}

# Tones that can be told from white and from black alike, and from each other by their lightness.
GREY, BLUE, ORANGE, GREEN, PURPLE, RED = (
    "#7d7d7d", "#2f81f7", "#e08600", "#2da44e", "#a371f7", "#e5534b",
)


# --- from a log to accuracy.csv


def parse(log, date):
    """The table's first line and its rows, one for each case."""
    lines = log.splitlines()
    heading = next((n for n, line in enumerate(lines) if " rounds of " in line), None)
    if heading is None:
        sys.exit("draw.py: no accuracy table in this log; what `cargo bench -p gpu-time-accuracy` prints is accepted")
    date = date or next(iter(re.findall(r" from (\d{4}-\d\d-\d\d)T", log)), None)
    if date is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        sys.exit("draw.py: no date in this log; give it as `draw.py LOG YYYY-MM-DD`")
    device, cuda, cupti = lines[heading].split(":")[0].split(", ")
    driver = re.findall(rf"^{re.escape(device)}, (\d[\d.]+),", log, re.M)[:1]
    source = ", ".join([device, *(f"driver {d}" for d in driver), cuda, cupti, date])
    cases = {}
    for line in lines[heading + 1 :]:
        if not line.startswith("|"):
            break
        what, figure, truth, _, bound, _, note = (cell.strip() for cell in line.split("|")[1:-1])
        name, _, said = what.partition(", ")
        figure, truth = numbers(figure), numbers(truth)
        if not figure or not truth:
            continue
        if not said:
            raw = re.search(r"raw ([\d.]+) µs", note)
            cases[name] = dict(
                zip(COLUMNS, [name, *figure, *truth, raw[1] if raw else "", most(bound, truth[0])])
            )
        elif said.startswith("truth by ncu"):
            cases[name]["ncu_us"] = truth[0]
        elif said in TOOLS:
            cases[name][TOOLS[said]] = figure[0]
    if not any(case.startswith("spin_") for case in cases):
        sys.exit("draw.py: the accuracy table of this log has no spins; was the bench cut short?")
    return source, cases.values()


def numbers(cell):
    """Median, 5th and 95th percentile, as they are written."""
    return re.findall(r"[\d.]+", cell)


def most(bound, truth):
    """The larger one of `0.25 µs or 1 %`."""
    limits = re.findall(r"([\d.]+) (µs|%)", bound)
    times = [float(n) * (1 if unit == "µs" else float(truth) / 100) for n, unit in limits]
    return f"{max(times):.3f}" if times else ""


def write(source, rows):
    with open(HERE / "accuracy.csv", "w", newline="", encoding="utf-8") as file:
        file.write(f"# {source}\n")
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read(name):
    """The first line, and the rows by case, with numbers where there are any."""
    with open(HERE / name, newline="", encoding="utf-8") as file:
        source = file.readline().lstrip("# ").rstrip()
        rows = {}
        for row in csv.DictReader(file):
            case = row.pop("case")
            rows[case] = {column: float(cell) for column, cell in row.items() if cell}
    return source, rows


# --- drawing


class Svg:
    """A picture without a background, in pixels from its upper left corner."""

    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="{GREY}">',
            f"<title>{title}</title>",
        ]

    def text(self, x, y, text, anchor="start", color=GREY, **more):
        extra = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
        fill = "" if color == GREY else f' fill="{color}"'
        at = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{at}{fill}{extra}>{text}</text>')

    def line(self, *points, color=GREY, width=1.0, dash=None, opacity=None):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        extra += f' stroke-opacity="{opacity}"' if opacity else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"{extra}/>'
        )

    def box(self, x, y, width, height, color, opacity=1.0):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" '
            f'fill="{color}" fill-opacity="{opacity}"/>'
        )

    def mark(self, x, y, color, hollow=False):
        paint = f'fill="none" stroke="{color}" stroke-width="1.6"' if hollow else f'fill="{color}"'
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3.4 if hollow else 3.8}" {paint}/>')

    def arrow(self, start, end, color=GREY):
        (x, y), (to_x, to_y) = start, end
        length = math.hypot(to_x - x, to_y - y)
        along_x, along_y = 6 * (to_x - x) / length, 6 * (to_y - y) / length
        self.line(start, end, color=color)
        wing = lambda side: (to_x - along_x + side * along_y / 2, to_y - along_y - side * along_x / 2)
        self.line(wing(1), end, wing(-1), color=color)

    def end(self):
        return "\n".join([*self.parts, "</svg>", ""])


class Axis:
    """From values to pixels."""

    def __init__(self, low, high, start, end, log=False):
        self.map = math.log10 if log else float
        self.low, self.high, self.start, self.end = self.map(low), self.map(high), start, end

    def __call__(self, value):
        share = (self.map(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def vertical_grid(svg, axis, ticks, top, bottom, label, spell="{:g}"):
    for tick in ticks:
        x = axis(tick)
        svg.line((x, top), (x, bottom), opacity=0.3)
        svg.text(x, bottom + 16, spell.format(tick), "middle")
    svg.text((axis.start + axis.end) / 2, bottom + 34, label, "middle")


def credit(svg, height, *sources):
    for n, source in enumerate(reversed(sources)):
        svg.text(10, height - 8 - 14 * n, source, font_size=10)


# --- the figures


def constant(source, rows):
    """What is read beyond the length that a spin was asked for."""
    width, height, left, top, bottom = 700, 350, 60, 14, 282
    svg = Svg(width, height, "What is read of a spinning kernel beyond the length that it was asked for")
    spins = {int(re.search(r"spin_(\d+)us", case)[1]): case for case in rows if case.startswith("spin_")}
    queued = {us: f"queued_{case}" for us, case in spins.items() if f"queued_{case}" in rows}
    series = [
        ("raw, a long queue behind", ORANGE, queued, "raw_us", True),
        ("raw, alone behind a hold", ORANGE, spins, "raw_us", False),
        ("net", BLUE, spins, "ours_us", False),
        ("CUPTI", GREEN, spins, "truth_us", True),
    ]
    highest = max(rows[case][column] - us for _, _, of, column, _ in series for us, case in of.items())
    x, y = Axis(0.9, 220, left, 500, log=True), Axis(0, math.ceil(highest + 0.2), bottom, top)
    vertical_grid(svg, x, sorted(spins), top, bottom, "length asked for, µs")
    for tick in range(math.ceil(highest + 0.2) + 1):
        svg.line((left, y(tick)), (500, y(tick)), opacity=0.3)
        svg.text(left - 8, y(tick) + 4, tick, "end")
    svg.text(18, (top + bottom) / 2, "reading less length asked for, µs", "middle",
             transform=f"rotate(-90 18 {(top + bottom) / 2})")
    labels = []
    for name, color, of, column, hollow in series:
        points = [(x(us), y(rows[case][column] - us)) for us, case in sorted(of.items())]
        svg.line(*points, color=color, width=1.6, dash="5 4" if hollow else None)
        for point in points:
            svg.mark(*point, color, hollow)
        # Where two lines end close to each other the lower label gives way.
        at = max(points[-1][1] + 4, labels[-1] + 15 if labels else 0)
        labels.append(at)
        svg.text(512, at, name, color=color)
    credit(svg, height, f"{source}. Medians. Data: accuracy.csv")
    return svg.end()


def error(source, rows):
    """How far each tool's median is from CUPTI's: all of them, and ours alone."""
    tools = [
        ("torch_events_us", "events in PyTorch", ORANGE, True),
        ("nvbench_us", "NVBench", PURPLE, True),
        ("do_bench_us", "Triton's do_bench", RED, True),
        ("ours_us", "net", BLUE, False),
    ]
    tools = [tool for tool in tools if any(tool[0] in row for row in rows.values())]
    off = lambda row, column: row[column] - row["truth_us"]
    step, top = 15, 46
    width, bottom = 760, top + step * len(rows)
    height = bottom + 66
    svg = Svg(width, height, "Distance from CUPTI by case")
    highest = max(off(row, tool[0]) for row in rows.values() for tool in tools if tool[0] in row)
    all_tools = Axis(-0.5, math.ceil(highest), 170, 450)
    widest = max(0.5, *(math.ceil(10 * abs(off(row, "ours_us"))) / 10 for row in rows.values()))
    ours = Axis(-widest, widest, 490, 740)
    vertical_grid(svg, all_tools, range(0, math.ceil(highest) + 1, 2), top, bottom, "median less CUPTI's, µs")
    ticks = [n * widest / 2 for n in range(-2, 3)]
    vertical_grid(svg, ours, ticks, top, bottom, "net less CUPTI's, µs; shaded: the bound", "{:.2g}")
    svg.line((ours(0), top), (ours(0), bottom))
    at = 170
    for _, name, color, hollow in tools:
        svg.mark(at + 5, 26, color, hollow)
        svg.text(at + 14, 30, name, color=color)
        at += 34 + 6.6 * len(name)
    for n, (case, row) in enumerate(rows.items()):
        y = top + step * (n + 0.5)
        svg.text(162, y + 4, case, "end", font_size=11)
        for column, _, color, hollow in tools:
            if column in row:
                svg.mark(all_tools(off(row, column)), y, color, hollow)
        if "bound_us" in row:
            bound = min(row["bound_us"], widest)
            svg.box(ours(-bound), y - 5, ours(bound) - ours(-bound), 10, GREY, 0.25)
        svg.mark(ours(off(row, "ours_us")), y, BLUE)
    credit(svg, height, f"{source}. Data: accuracy.csv")
    return svg.end()


def cold(source, rows, earlier_source, earlier):
    """A copy in several states of the L2, by several tools."""
    sizes = {"3840kib": "3.75 MiB", "7680kib": "7.5 MiB", "15mib": "15 MiB", "30mib": "30 MiB"}
    step, top, gap = 14, 14, 24
    groups = []
    for size, title in sizes.items():
        found, flushed, before = (
            rows.get(f"copy_{size}", {}), rows.get(f"cold_copy_{size}", {}), earlier[f"cold_copy_{size}"],
        )
        lines = [
            ("net, as found", found.get("ours_us"), BLUE, False),
            ("net, cold", flushed.get("ours_us"), BLUE, False),
            ("CUPTI, clean flush", flushed.get("truth_us"), GREEN, False),
            ("ncu less 0.7 µs, clean flush", flushed.get("ncu_us"), GREEN, False),
            ("NVBench, dirty flush", flushed.get("nvbench_us"), RED, False),
            ("do_bench, dirty flush", flushed.get("do_bench_us"), RED, False),
            ("CUPTI, clean flush", before["cupti_clean_us"], GREEN, True),
            ("CUPTI, dirty flush", before["cupti_dirty_us"], ORANGE, True),
            ("NVBench, dirty flush", before["nvbench_us"], RED, True),
            ("do_bench, dirty flush", before["do_bench_us"], RED, True),
        ]
        groups.append((title, [line for line in lines if line[1] is not None]))
    width = 720
    bottom = top + sum(step * len(lines) + 5 + gap for _, lines in groups)
    height = bottom + 80
    svg = Svg(width, height, "A copy of four sizes, as found and after a clean and a dirty flush")
    x = Axis(0, 30, 260, 690)
    vertical_grid(svg, x, range(0, 31, 5), top, bottom, "µs")
    y = top
    for title, lines in groups:
        svg.text(10, y + 17, f"copy of {title}", font_weight="bold")
        y += gap
        for n, (name, us, color, hollow) in enumerate(lines):
            y += 5 if hollow and not lines[n - 1][3] else 0
            svg.text(252, y + step / 2 + 4, name, "end", font_size=11)
            svg.line((x(0), y + step / 2), (x(us), y + step / 2), color=color, opacity=0.45)
            svg.mark(x(us), y + step / 2, color, hollow)
            svg.text(x(us) + 8, y + step / 2 + 4, f"{us:.2f}", font_size=10)
            y += step
    credit(
        svg, height, f"Filled: {source}. Data: accuracy.csv", f"Hollow: {earlier_source}. Data: cold.csv",
    )
    return svg.end()


def bracket():
    """The order of a bracket that is cold and held. Drawn, not measured."""
    width, height, host, gpu = 760, 250, 62, 142
    svg = Svg(width, height, "The order of a cold, held bracket: a schema, not to scale")
    svg.text(10, host + 5, "host")
    svg.text(10, gpu + 5, "GPU")
    # Label, where the host enqueues it, from where to where the GPU does it, colour.
    steps = [
        ("flush", 70, 110, 210, GREY),
        ("hold", 130, 212, 452, ORANGE),
        ("start", 190, 464, 464, BLUE),
        ("kernel", 250, 500, 620, GREEN),
        ("stop", 310, 656, 656, BLUE),
    ]
    for name, enqueued, begins, ends, color in steps:
        svg.box(enqueued, host - 9, 50, 18, color, 0.35)
        svg.text(enqueued + 25, host - 16, name, "middle", color=color)
        if begins == ends:
            svg.line((begins, gpu - 20), (begins, gpu + 34), color=color, width=2)
            svg.text(begins, gpu - 26, name, "middle", color=color)
        else:
            svg.box(begins, gpu - 14, ends - begins, 28, color, 0.35)
            svg.text((begins + ends) / 2, gpu + 4, name, "middle", color=color)
    svg.box(370, host - 9, 40, 18, ORANGE, 0.35)
    svg.text(390, host - 16, "release", "middle", color=ORANGE)
    svg.arrow((396, host + 9), (446, gpu - 16), ORANGE)
    svg.text(434, 94, "the stop is enqueued before the hold ends: fed")
    for begins, ends, y, name, color in [
        (464, 656, gpu + 30, "raw: from event to event", BLUE),
        (500, 620, gpu + 56, "CUPTI, and net = raw − bias", GREEN),
    ]:
        svg.line((begins, y - 5), (begins, y + 5), color=color)
        svg.line((ends, y - 5), (ends, y + 5), color=color)
        svg.line((begins, y), (ends, y), color=color)
        svg.text((begins + ends) / 2, y + 16, name, "middle", color=color)
    svg.arrow((60, 226), (740, 226))
    svg.text(60, 244, "time (a schema: not measured, not to scale)", font_size=10)
    return svg.end()


def figures():
    source, rows = read("accuracy.csv")
    earlier_source, earlier = read("cold.csv")
    return {
        "bracket.svg": bracket(),
        "constant.svg": constant(source, rows),
        "error.svg": error(source, rows),
        "cold.svg": cold(source, rows, earlier_source, earlier),
    }


def main():
    arguments = sys.argv[1:]
    if arguments == ["--check"]:
        stale = [
            name for name, text in figures().items()
            if not (HERE / name).is_file() or (HERE / name).read_text(encoding="utf-8") != text
        ]
        sys.exit(f"draw.py: not what is drawn now: {', '.join(stale)}; run docs/figures/draw.py" if stale else 0)
    if len(arguments) > 2 or any(argument.startswith("-") for argument in arguments):
        sys.exit("usage: draw.py [LOG [DATE] | --check]")
    if arguments:
        try:
            log = Path(arguments[0]).read_text(encoding="utf-8", errors="replace")
        except OSError as why:
            sys.exit(f"draw.py: {why}")
        write(*parse(log, arguments[1] if len(arguments) == 2 else None))
    for name, text in figures().items():
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
