#!/usr/bin/env bash
# Builds everything that is to run on a GPU into one folder, for x86-64 Linux.
#
#   gpu/bundle.sh [--rivals] [DIR]     default: `bundle` at the root of the repository
#
# With `--rivals` NVBench goes along, for the bench `accuracy` to compare with: wheels of `cuda-bench`,
# which want the PyTorch and the `cuda-bindings` of the machine. They are fetched by `pip`.
#
# Carry that folder to a machine with an NVIDIA GPU, which needs no Rust, and run `bundle/run.sh`.
set -euo pipefail
is_with_rivals=
if [[ ${1:-} == --rivals ]]; then
    is_with_rivals=1
    shift
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${1:-$root/bundle}"
bundle=$(cd "${1:-$root/bundle}" && pwd)
limit_mib=60

cd "$root"
rm -rf "$bundle"/{test,bin,example,bench,wheels}
cp gpu/run.sh gpu/clean.sh "$bundle/"

# built TARGETS…: builds them. Cargo says of each executable what kind of target it is; that becomes its
# folder.
built() {
    cargo build --locked --release --message-format=json "$@" |
        sed -n 's/.*"kind":\["\([a-z]*\)"\].*"executable":"\([^"]*\)".*/\1 \2/p' |
        while read -r kind executable; do
            # Without the hash in its name and without symbols.
            name=$(basename "$executable" | sed 's/-[0-9a-f]\{16\}$//')
            mkdir -p "$bundle/$kind"
            strip -o "$bundle/$kind/$name" "$executable"
        done
}
# Built together, the benches would have every feature that the scenarios ask for.
built -p gpu-time-scenarios --test scenarios
built -p gpu-time -p gpu-time-accuracy --features nvml,html --examples --bench '*' \
    --bin kernel-base --bin flush-methods
built -p gpu-time-tests --features cublas,gpu-time/nvml,gpu-time/html --example async_pitfall

# A package of its own: the workspace has one cudarc only.
versions=tests/cudarc-versions
cargo build --locked --release --manifest-path "$versions/Cargo.toml" \
    --target-dir "${CARGO_TARGET_DIR:-target}/cudarc-versions"
strip -o "$bundle/bin/cudarc-versions" \
    "${CARGO_TARGET_DIR:-target}/cudarc-versions/release/cudarc-versions"

if [[ -n $is_with_rivals ]]; then
    for python in 310 311 312 313; do
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
            --implementation cp --python-version "$python" --abi "cp$python" \
            --platform manylinux_2_27_x86_64 --dest "$bundle/wheels" cuda-bench==0.3.0
    done
fi

# The tests with the program that they run, and at least one of each other kind.
ls "$bundle"/test/scenarios "$bundle"/bin/{scenario,kernel-base,flush-methods,cudarc-versions} "$bundle"/example/* "$bundle"/bench/*
size=$(du --summarize --block-size=1M "$bundle" | cut --fields=1)
((size < limit_mib)) || { echo "\`$bundle\` has $size MiB, more than $limit_mib" >&2; exit 1; }
echo "$bundle: $size MiB"
