#!/usr/bin/env bash
# Runs the recipes in this folder on the machine's GPU, each without and with timing, and prints a table of
# the results last.
#
#   run.sh [OUTDIR [NAME…]]     output and reports go to OUTDIR (default: a new folder in /tmp)
#
# A recipe fails unless both programs succeed and print the same, and every annotated function was timed on
# the GPU. Needs a driver, and `libcupti`, `libcudart`, `libcublas` and `libnvrtc` from a CUDA toolkit or from
# Python wheels.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
chosen=("${@:2}")
limit_s=120
table=
failed=0

# The libraries that do not come with the driver, as in `gpu/run.sh`: wheels first, then a toolkit.
libraries=${LD_LIBRARY_PATH:-}
wheels=$(python3 -c 'import glob, sysconfig
print(*glob.glob(sysconfig.get_path("purelib") + "/nvidia/*/lib"))' 2>/dev/null)
for folder in $wheels /usr/local/cuda/{lib64,extras/CUPTI/lib64}; do
    [[ ! -d $folder ]] || libraries+="${libraries:+:}$folder"
done
# cubecl compiles its kernels with the toolkit's headers.
for folder in /usr/local/cuda $wheels; do
    folder=${folder%/lib}
    [[ -n ${CUDA_PATH:-} || ! -e $folder/include/cuda_runtime.h ]] || export CUDA_PATH=$folder
done

# untimed CSV: prints the functions without time on the GPU. Fails if there are any, or no functions at all.
untimed() {
    awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { function_name = $1; if (!(function_name in timed)) timed[function_name] = 0 }
        # Fields before the device may contain commas, so the columns are counted from the device on.
        sub(/^.*,cuda:/, "") {
            split($0, tail, ",")
            before = column["device"] - 1
            is_host = tail[column["clock"] - before] == "host"
            if (!is_host && tail[column["total_ns"] - before] > 0) timed[function_name] = 1
        }
        END {
            for (name in timed) { functions++; if (!timed[name]) { print name; missing = 1 } }
            exit missing || !functions
        }' "$1"
}

# recipe NAME: runs both programs and adds a line to the table.
recipe() {
    local name=$1 start=$SECONDS verdict=ok plain=$out/$1-plain.txt timed=$out/$1.txt csv=$out/$1.csv untimed
    local -a run=(env LD_LIBRARY_PATH="$libraries:$here/lib/$name" timeout --kill-after=10 "$limit_s")
    printf '\n== %s\n' "$name"
    rm -f "$csv"
    if ! "${run[@]}" "$here/bin/recipe-$name-plain" >"$plain"; then
        verdict='FAILED: the plain program'
    elif ! "${run[@]}" env GPU_TIME_REPORT="table,table:$out/$name.table,json:$out/$name.json,csv:$csv" \
        "$here/bin/recipe-$name" >"$timed"; then
        verdict='FAILED: the annotated program'
    elif ! [[ -s $plain ]] || ! cmp "$plain" "$timed"; then
        verdict='FAILED: the annotated program printed something else'
    elif ! untimed=$(untimed "$csv"); then
        verdict="FAILED: not timed on the GPU: ${untimed:-any function}"
    fi
    [[ ! -e $timed ]] || cat "$timed"
    [[ $verdict == ok ]] || failed=1
    table+=$(printf '%-24s %4d s  %s' "$name" $((SECONDS - start)) "${verdict//$'\n'/, }")$'\n'
}

query=(nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm --format=csv,noheader)
machine=$("${query[@]}" 2>&1) || machine="no answer from nvidia-smi: $machine"
echo "$machine"
known=()
for program in "$here"/bin/*-plain; do
    name=$(basename "$program" -plain)
    known+=("${name#recipe-}")
done
for name in "${chosen[@]:-${known[@]}}"; do
    recipe "$name"
done

printf '\n== result, output in %s\n%s\n' "$out" "$machine"
printf '%s' "$table"
exit $failed
