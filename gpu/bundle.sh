#!/usr/bin/env bash
# Builds everything that runs on a GPU into one folder, for x86-64 Linux.
#
#   gpu/bundle.sh [--rivals] [--unoptimised] [DIR]     default: `bundle` at the root of the repository
#
# `--unoptimised` only shows that everything builds, in less time. The bundle is then too large to carry.
# `--rivals` adds NVBench, which the bench `accuracy` then compares with: wheels of `cuda-bench`, downloaded
# with `pip`. They need PyTorch and `cuda-bindings` on the GPU machine.
#
# Copy the folder to a machine with an NVIDIA GPU and run `bundle/run.sh` there. No Rust is needed.
set -euo pipefail
is_with_rivals='' profile=release options=(--release) limit_mib=30
while [[ ${1:-} == --* ]]; do
    case $1 in
    --rivals) is_with_rivals=1 ;;
    --unoptimised) profile=debug options=() limit_mib=1000 ;;
    *) echo "unknown option \`$1\`: expected \`--rivals\` or \`--unoptimised\`" >&2; exit 2 ;;
    esac
    shift
done
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${1:-$root/bundle}"
bundle=$(cd "${1:-$root/bundle}" && pwd)

cd "$root"
rm -rf "$bundle"/{test,bin,example,bench,wheels}
cp gpu/{run,ab,clean,ranges}.sh "$bundle/"

# built TARGETS…: builds targets. The kind that cargo reports for each executable becomes its folder.
built() {
    cargo build --locked "${options[@]}" --message-format=json "$@" |
        sed -n 's/.*"kind":\["\([a-z]*\)"\].*"executable":"\([^"]*\)".*/\1 \2/p' |
        while read -r kind executable; do
            # Drop the hash in the name, and the symbols.
            name=$(basename "$executable" | sed 's/-[0-9a-f]\{16\}$//')
            mkdir -p "$bundle/$kind"
            strip -o "$bundle/$kind/$name" "$executable"
        done
}
# The selection of the tests in `.ci/run`, which then need not build it again.
everything=(--workspace --all-features --test scenarios --bin scenario --bin gpu-time)
if [[ $profile == debug ]]; then
    built "${everything[@]}" --examples --bench '*'
else
    built "${everything[@]}" --example async_pitfall
    # What is timed gets builds of its own: in one, the benches would have all features that the scenarios ask for.
    built -p gpu-time --features kernels --examples
    built -p gpu-time -p gpu-time-accuracy --features nvml,kernels,nvtx --bench '*'
fi

# Built because it shares a package with the others: it needs no GPU, is there as a bench, or shows what
# scenarios test.
rm -f "$bundle/bench/snapshot" "$bundle"/bin/{accuracy,budget-bench} "$bundle/example/two_kernels"

# Outside the workspace, which has only one version of cudarc. In the folder of the test that builds it as well, and
# unoptimised with the same settings.
versions=tests/cudarc-versions
outputs=${CARGO_TARGET_DIR:-target}/tmp/cudarc-versions
CARGO_PROFILE_DEV_DEBUG=0 cargo build --locked "${options[@]}" --manifest-path "$versions/Cargo.toml" \
    --target-dir "$outputs"
strip -o "$bundle/bin/cudarc-versions" "$outputs/$profile/cudarc-versions"

if [[ -n $is_with_rivals ]]; then
    for python in 310 311 312 313; do
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
            --implementation cp --python-version "$python" --abi "cp$python" \
            --platform manylinux_2_27_x86_64 --dest "$bundle/wheels" cuda-bench==0.3.0
    done
fi

# Fails unless the tests are there with the program that they run, and one of each other kind.
ls "$bundle"/test/scenarios "$bundle"/bin/{scenario,gpu-time,cudarc-versions} \
    "$bundle"/example/* "$bundle"/bench/*
# What is carried is compressed. The wheels are NVBench's, so the limit is not for them.
compressed() {
    echo $(($(tar --create --gzip --directory "$bundle" "$@" | wc --bytes) >> 20))
}
size=$(compressed --exclude ./wheels .)
((size <= limit_mib)) || { echo "\`$bundle\` is $size MiB compressed, more than $limit_mib" >&2; exit 1; }
echo "$bundle: $size MiB compressed${is_with_rivals:+, and wheels of $(compressed wheels) MiB}"
