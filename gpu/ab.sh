#!/usr/bin/env bash
# Counts how often `gpu-time ab` has a false verdict on two equal programs, and how often it finds within a
# minute that a kernel of 10 µs got 1 % longer. Prints one line for each experiment. Nothing else may use
# the GPU.
#
#   ab.sh GPU_TIME TAKE_TURNS [EQUAL [DIFFERENT]]     the tool, the example, and how many experiments
#
# The defaults take at most eighteen minutes: 40 experiments of 12 s, and 10 of a minute or less.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 GPU_TIME TAKE_TURNS [EQUAL [DIFFERENT]]" >&2; exit 2; }
tool=$1 example=$(realpath "$2") equal=${3:-40} different=${4:-10}
programs=$(mktemp -d)
trap 'rm -r "$programs"' EXIT

# program NAME NS MS: writes a program that runs kernels of NS nanoseconds for MS milliseconds.
program() {
    printf '#!/bin/sh\nexec "%s" %s %s\n' "$example" "$2" "$3" >"$programs/$1"
    chmod +x "$programs/$1"
}

# compare OLD NEW TIME: compares two programs, prints the result, and sets `verdicts` to the number of changes
# found. Ends the script if an experiment has no interval, because it is then inconclusive.
compare() {
    local json status=0
    json=$("$tool" ab "$programs/$1" "$programs/$2" --threshold 0% --max-time "$3" --format json) || status=$?
    ((status < 2)) || exit "$status"
    verdicts=$(python3 -c '
import json, sys
of = json.loads(sys.argv[1])
for series in of["series"]:
    low, high = series["interval95"] or sys.exit("no interval: the programs made too few runs")
    print("%s: %+.2f %% (%+.2f to %+.2f), %d blocks" % (
        series["verdict"], 100 * series["change"], 100 * low, 100 * high, series["runs"][0]), file=sys.stderr)
print(of["slower"] + of["faster"])' "$json")
}

program short 10000 100
false_verdicts=0
for ((i = 0; i < equal; i++)); do
    compare short short 12s
    false_verdicts=$((false_verdicts + (verdicts > 0)))
done
program old 10000 1000
program new 10100 1000
seen=0
for ((i = 0; i < different; i++)); do
    compare old new 60s
    seen=$((seen + (verdicts > 0)))
done
echo "equal programs: $false_verdicts of $equal verdicts are false (at most 5 %)"
echo "a kernel that got 1 % longer: found within a minute in $seen of $different (at least 9 of 10)"
((false_verdicts * 20 <= equal && seen * 10 >= different * 9))
