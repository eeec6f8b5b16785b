#!/usr/bin/env python3
"""Compares the kernels of a function in a report of gpu-time with a full record of the same program.

    compare.py REPORT.json RECORD.json SETUP.json [FUNCTION]

REPORT is of a run with timing, RECORD of one without, SETUP of one without that calls no function
(`--passes 0`). FUNCTION (default: decode) is the end of the outermost function's name.

Fails if a kernel's count or launch configuration differs, if the medians of a kernel that ran at least
20 times differ by more than a step of the GPU's clock, or if the functions' own times do not add up to
the record's busy time within half a percent.
"""

import json
import sys

STEP_NS = 32
ENOUGH_FOR_A_MEDIAN = 20
BUSY_SHARE = 0.005


def key(kernel):
    names = ("name", "grid", "block", "registers", "shared_bytes")
    return tuple(str(kernel[name]) for name in names)


def by_key(kernels):
    return {key(kernel): kernel for kernel in kernels}


def series_of(site):
    """Returns the series of the function's calls, not those of its launches."""
    return [series for series in site["series"] if series["launch"] is None]


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    report, record, setup = (json.load(open(path)) for path in sys.argv[1:4])
    function = sys.argv[4] if len(sys.argv) == 5 else "decode"

    found = [site for site in report["sites"] if site["name"].endswith("::" + function)]
    if len(found) != 1 or len(series_of(found[0])) != 1:
        sys.exit(f"the report has no function `{function}` with one series")
    [outermost] = series_of(found[0])
    failures = []
    if outermost["timed"] != outermost["opened"]:
        failures.append(f"{outermost['opened']} of {outermost['timed']} calls were recorded")
    for name in ("zero_times", "dropped"):
        if record[name] or setup[name]:
            failures.append(f"`{name}` in a record")

    ours, all_run, before = (by_key(x["kernels"]) for x in (outermost, record, setup))
    print(f"{'count':>7} {'recorded':>8} {'median ns':>10} {'recorded':>9}  kernel")
    for each in sorted(ours, key=lambda each: -ours[each]["total_ns"]):
        kernel, truth = ours[each], all_run.get(each)
        name = " ".join(each)
        if truth is None:
            failures.append(f"not in the record: {name}")
            continue
        count = truth["count"] - before.get(each, {"count": 0})["count"]
        medians = kernel["time_ns"]["median"], truth["median_ns"]
        print(f"{kernel['count']:7} {count:8} {medians[0]:10.0f} {medians[1]:9}  {name}")
        if kernel["count"] != count:
            failures.append(f"count of {name}")
        if count >= ENOUGH_FOR_A_MEDIAN and abs(medians[0] - medians[1]) > STEP_NS:
            failures.append(f"median of {name}")

    outside = {}
    for each in sorted(all_run.keys() - ours.keys()):
        truth, earlier = all_run[each], before.get(each, {"count": 0, "total_ns": 0})
        if count := truth["count"] - earlier["count"]:
            outside[each] = truth["total_ns"] - earlier["total_ns"]
            print(f"{'':7} {count:8} {'':10} {truth['median_ns']:9}  {' '.join(each)}")

    own = sum(
        series["self_busy_ns"]["sum"]
        for site in report["sites"]
        for series in series_of(site)
        if series["self_busy_ns"]
    )
    busy = record["busy_ns"] - setup["busy_ns"] - sum(outside.values())
    print(f"busy: the functions' own times {own / 1e3:.1f} µs, recorded {busy / 1e3:.1f} µs")
    if abs(own - busy) > BUSY_SHARE * busy:
        failures.append("busy time")

    for failure in failures:
        print(f"differs: {failure}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
