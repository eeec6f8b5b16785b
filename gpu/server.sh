#!/usr/bin/env bash
# Measures what timing adds to the requests of `examples/server`, beside the program without it.
#
#   gpu/server.sh build [DIR]               builds its programs into DIR, by default `bundle-server`
#   DIR/server.sh run OUT [ROUNDS [TIME]]   on a machine with a GPU and Python, no Rust needed; reports go to OUT
#
# In each round, each variant serves 500 and 5,000 requests a second, and as many as it can, for TIME seconds. The
# variants take turns in an order that changes by round: the program without timing, the same again as a control, with
# `GPU_TIME=off`, with a budget of 1 %, and with the first second recorded besides. The defaults, ten rounds of 1.5 s,
# take eight and a half minutes. Prints for each the change of p50 and p99 over the program without timing, as the median
# of the rounds with the interval that has it in 19 of 20 cases, and what the reports say of their own effect.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1:-} in
build)
    bundle=${2:-$here/../bundle-server}
    mkdir -p "$bundle"
    bundle=$(cd "$bundle" && pwd)
    cd "$here/../examples/server"
    target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")/server
    for features in "" gpu-time; do
        cargo build --locked --release --features "$features" --target-dir "$target"
        cp "$target/release/server" "$bundle/server${features:+-timed}"
    done
    cp "$here/server.sh" "$bundle/"
    ;;
run)
    out=${2:?expected a folder for the reports}
    mkdir -p "$out"
    exec python3 - "$here" "$out" "${3:-10}" "${4:-1.5}" <<'PYTHON'
import glob, json, os, statistics, subprocess, sys

here, out, rounds, time = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
VARIANTS = {
    "plain": ("server", {}),
    "control": ("server", {}),
    "off": ("server-timed", {"GPU_TIME": "off"}),
    "budget": ("server-timed", {"GPU_TIME_BUDGET": "1%"}),
    "start": ("server-timed", {"GPU_TIME_BUDGET": "1%", "GPU_TIME_RECORD": "start:1s"}),
}
LOADS = ["500", "5000", "0"]
results, effects = {}, {}

def serve(variant, load, nth):
    program, settings = VARIANTS[variant]
    report = f"{out}/{variant}-{load}-{nth}.json"
    env = {**os.environ, **settings, "GPU_TIME_REPORT": f"json:{report}"}
    run = subprocess.run([f"{here}/{program}", load, time], env=env, stdout=subprocess.PIPE, text=True, timeout=60)
    try:
        results[variant, load, nth] = json.loads(run.stdout.splitlines()[0])
    except IndexError:
        sys.exit(f"{variant} at {load} requests a second gave no result")
    if os.path.exists(report):
        with open(report) as file:
            budget = json.load(file)["process"]["budget"] or {}
        if budget.get("added_share") is not None:
            effects.setdefault((variant, load), []).append((budget["added_share"], budget["added_error_share"]))

def interval(values):
    """The order statistics that have the median between them in 19 of 20 cases, or the extremes of few values."""
    values, n, outside, below = sorted(values), len(values), 0.0, 0
    term = 0.5 ** n
    while below < n // 2 and 2 * (outside + term) < 0.05:
        outside += term
        term *= (n - below) / (below + 1)
        below += 1
    at = max(below - 1, 0)
    return values[at], values[n - 1 - at]

for nth in range(rounds):
    for load in LOADS:
        names = list(VARIANTS)
        for variant in names[nth % len(names):] + names[:nth % len(names)]:
            serve(variant, load, nth)

with open(f"{out}/results.json", "w") as file:
    json.dump([[*key, value] for key, value in results.items()], file)
for load in LOADS:
    rate = f"{load} requests a second" if load != "0" else "full speed"
    print(f"\n{rate}: change over plain in %, median of {rounds} rounds (95 % interval)")
    for variant in VARIANTS:
        if variant == "plain":
            base = [results[variant, load, nth] for nth in range(rounds)]
            means = {key: statistics.median(run["blocking"][key] for run in base) for key in ("p50", "p99")}
            print(f"  plain: p50 {means['p50']:.0f} µs, p99 {means['p99']:.0f} µs of `blocking`, "
                  f"{statistics.median(run['per_s'] for run in base):.0f} a second")
            continue
        cells = []
        for handler in ("blocking", "direct"):
            for key in ("p50", "p99"):
                of = lambda name, nth: results[name, load, nth][handler][key]
                changes = [100 * (of(variant, nth) / of("plain", nth) - 1) for nth in range(rounds)]
                low, high = interval(changes)
                cells.append(f"{handler} {key} {statistics.median(changes):+.1f} ({low:+.1f} to {high:+.1f})")
        print(f"  {variant}: " + ", ".join(cells))
        if (variant, load) in effects:
            own = effects[variant, load]
            share, error = (100 * statistics.median(of) for of in zip(*own))
            print(f"    its reports: calls {share:+.2f} ±{error:.2f} % longer, median of {len(own)}")
PYTHON
    ;;
*)
    echo "usage: $0 build [DIR] | run OUT [ROUNDS [TIME]]" >&2
    exit 2
    ;;
esac
