#!/usr/bin/env bash
# Runs everything in this folder on the machine's GPU and prints a table of the results last.
#
#   run.sh [OUTDIR [PART…]]     logs and reports go to OUTDIR (default: a new folder in /tmp)
#
# Names of parts, such as `scenarios`, `accuracy` or `'example-*'`, restrict the run to those parts.
# Needs only a driver. `GPU_TIME_TEST_DRIVER=simulated` runs the tests without a GPU, on the machine
# that built them.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
: "${GPU_TIME_TEST_DRIVER:=real}"

chosen=("${@:2}")
limit_s=240
table=
failed=0

# is_chosen NAME: succeeds if the command line asks for this part.
known=()
is_chosen() {
    local pattern
    known+=("$1")
    ((${#chosen[@]})) || return 0
    for pattern in "${chosen[@]}"; do
        # shellcheck disable=SC2053 # a pattern
        [[ $1 == $pattern ]] && return 0
    done
    return 1
}

# part NAME COMMAND…: runs one part and writes its output to the terminal and to OUTDIR/NAME.log.
part() {
    local name=$1 log=$out/$1.log start=$SECONDS status library verdict=ok
    is_chosen "$name" || return 0
    shift
    printf '\n== %s\n' "$name"
    (cd "$out" && timeout --kill-after=10 "$limit_s" "$@") </dev/null 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    # The library that the part reports as missing.
    library=$(sed -n '/no lib[a-z]* on this machine/{s/.*no \(lib[a-z]*\) on .*/\1/p;q}' "$log")
    if ((status == 124 || status == 137)); then
        verdict="FAILED: took more than $limit_s s"
    elif ((status != 0)) && [[ $library == libcupti ]]; then # nothing can be compared without it
        verdict="skipped: no $library"
    elif ((status != 0)); then
        verdict="FAILED: status $status"
    elif grep --quiet 'no GPU here' "$log"; then # examples and benches print this and continue
        verdict='FAILED: ran without a GPU'
    elif [[ -n $library ]]; then
        verdict="ok, skipped what needs $library"
    fi
    [[ $verdict != FAILED* ]] || failed=1
    # Add the test runner's counts.
    verdict+=$(sed -n 's/^test result: [A-Za-z]*\. \(.*\); 0 ignored.*; \(.*\) filtered out.*/ (\1; \2 skipped)/p' "$log")
    table+=$(printf '%-24s %4d s  %s' "$name" $((SECONDS - start)) "$verdict")$'\n'
}

scenarios() {
    local -a options=()
    local limit_s=400
    # Tests that need the simulated driver are in modules named `simulated`. The soak is a separate part.
    [[ $GPU_TIME_TEST_DRIVER == simulated ]] || options=(--skip simulated:: --skip soak::)
    # One scenario needs cuBLAS and reports if it is missing.
    part scenarios "${toolkit[@]}" GPU_TIME_TEST_DRIVER="$GPU_TIME_TEST_DRIVER" \
        GPU_TIME_TEST_SCENARIO_BIN="$here/bin/scenario" "$here/test/scenarios" "${options[@]}"
}

# Everything at once for ten minutes, or for the time in `SOAK`. Runs only when named.
soak() {
    if ((${#chosen[@]})); then
        local limit_s=700
        part soak env GPU_TIME_REPORT="table,json:$out/soak.json" \
            "$here/bin/scenario" soak/run "${SOAK:-600s}"
    else
        table+=$(printf '%-24s %6s  skipped: runs only when named' soak '')$'\n'
    fi
}

# False and missed verdicts of `gpu-time ab`. Runs only when named, because nothing else may use the GPU meanwhile.
ab() {
    if ((${#chosen[@]})); then
        local limit_s=1200
        part ab "$here/ab.sh" "$here/bin/gpu-time" "$here/example/take_turns"
    else
        table+=$(printf '%-24s %6s  skipped: runs only when named' ab '')$'\n'
    fi
}

# with_ncu NAME: runs a part that needs Nsight Compute.
with_ncu() {
    if [[ $GPU_TIME_TEST_DRIVER == real ]] && command -v ncu >/dev/null; then
        part "$1" "$here/$1.sh" "$here/bin/scenario"
    else
        table+=$(printf '%-24s %6s  skipped: needs a GPU and `ncu`' "$1" '')$'\n'
    fi
}

echo "== machine"
uname --kernel-name --kernel-release --machine
query=(nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm --format=csv,noheader)
machine=$("${query[@]}" 2>&1) || machine="no answer from nvidia-smi: $machine"
echo "$machine"

# cuBLAS and CUPTI do not come with the driver. Python's wheels are searched first, as their users expect,
# then a toolkit.
libraries=${LD_LIBRARY_PATH:-}
wheels=$(python3 -c 'import glob, sysconfig
print(*glob.glob(sysconfig.get_path("purelib") + "/nvidia/*/lib"))' 2>/dev/null)
for folder in $wheels /usr/local/cuda/{lib64,extras/CUPTI/lib64}; do
    [[ ! -d $folder ]] || libraries+="${libraries:+:}$folder"
done
toolkit=(env LD_LIBRARY_PATH="$libraries")

scenarios
soak
ab
with_ncu clean
with_ncu ranges
part cudarc-versions "$here/bin/cudarc-versions"
for example in "$here"/example/*; do
    name=$(basename "$example")
    part "example-$name" "${toolkit[@]}" GPU_TIME_REPORT="table,json:$out/$name.json" "$example"
done
for bench in "$here"/bench/*; do
    name=$(basename "$bench")
    [[ $name == accuracy ]] || part "bench-$name" "${toolkit[@]}" "$bench"
done
part accuracy "${toolkit[@]}" "$here/bench/accuracy"
part kernel-base "${toolkit[@]}" "$here/bench/accuracy" kernel-base
part flush-methods "${toolkit[@]}" "$here/bench/accuracy" flush-methods
part cupti-leftover "${toolkit[@]}" "$here/bench/accuracy" leftover
part cupti-hazards "${toolkit[@]}" "$here/bench/accuracy" hazards

for pattern in "${chosen[@]}"; do
    # shellcheck disable=SC2053
    for name in "${known[@]}"; do [[ $name == $pattern ]] && continue 2; done
    table+="no part matches \`$pattern\`: expected one of ${known[*]}"$'\n'
    failed=1
done

printf '\n== result, logs in %s\n%s\n' "$out" "$machine"
printf '%s' "$table"
exit $failed
