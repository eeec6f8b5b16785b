#!/usr/bin/env bash
# Rebuilds ptx/*.ptx from cuda/*.cu, in place.
#
#   kernels/rebuild.sh           rebuild
#   kernels/rebuild.sh --check   build in a temporary folder and compare byte for byte
#
# Needs Python 3 with venv and access to PyPI, but no GPU, driver or CUDA toolkit.
#
# NVRTC 12.0, because a driver refuses PTX of a newer ISA than its own. CUDA 12.0 writes PTX ISA 8.0,
# which driver 525 and later load.
# sm_70, because PTX runs on its target and all later ones, and these kernels benefit from a later target
# only if the file name says so. The hold relies on system scope in the memory model, which starts with
# sm_70 (Volta).
set -euo pipefail

version=12.0.140
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${CARGO_TARGET_DIR:-$here/../target}/nvrtc-$version

case "$#:${1-}" in
0:) out=$here/ptx ;;
1:--check)
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
    ;;
*)
    echo "usage: rebuild.sh [--check]" >&2
    exit 2
    ;;
esac

# `complete` is created last, so that an interrupted installation is repeated.
if [[ ! -e $venv/complete ]]; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        "nvidia-cuda-nvrtc-cu12==$version"
    touch "$venv/complete"
fi

status=0
for cu in "$here"/cuda/*.cu; do
    name=$(basename "$cu" .cu).ptx
    target=70
    [[ $name =~ _sm_([0-9]+)\.ptx$ ]] && target=${BASH_REMATCH[1]}
    "$venv/bin/python" "$here/nvrtc.py" "$cu" "$out/$name" "compute_$target"
    if ! cmp --silent "$out/$name" "$here/ptx/$name"; then
        echo "\`kernels/ptx/$name\` does not match its source:" \
            "run \`kernels/rebuild.sh\` and commit the result" >&2
        status=1
    fi
done
exit $status
