#!/usr/bin/env bash
# Builds the example without an installed CUDA toolkit: its parts come from PyPI.
#
#   ./build.sh [FOLDER] [ARGUMENT OF CARGO …]
#
# FOLDER (default: target/candle of the repository) gets the toolkit (1.2 GB) and all build outputs. The
# arguments are for `candle-llama` alone.
# `CUDA_COMPUTE_CAP` chooses the GPU: 90, the default, is Hopper.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

build=$(realpath -m "${1:-../../target/candle}")
shift $(($# > 0))
cuda=$build/toolkit/nvidia/cu13

if [[ ! -e $build/toolkit/complete ]]; then
    parts=nvcc,nvvm,crt,cudart,cccl,cublas,curand,nvrtc,cupti
    python3 -m pip install --quiet --upgrade --no-compile --target "$build/toolkit" \
        "cuda-toolkit[$parts]==13.0.2"

    # The packages name their libraries `libcublas.so.13`, the linker looks for `libcublas.so`.
    (cd "$cuda/lib" && for library in *.so.*; do ln -sf "$library" "${library%%.so.*}.so"; done)

    # The driver's library comes with the driver. One with its names and no code is enough to link.
    mkdir -p "$cuda/lib/stubs"
    echo '#include <cuda.h>' | cc -E -P -I "$cuda/include" - |
        grep -oE '\bcu[A-Z][A-Za-z0-9_]* *\(' | tr -d ' (' | sort -u |
        sed 's/.*/void &(void) {}/' |
        cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$cuda/lib/stubs/libcuda.so" -x c -
    touch "$build/toolkit/complete"
fi

export CUDA_HOME=$cuda NVCC=$cuda/bin/nvcc PATH=$cuda/bin:$PATH
export CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-90} CARGO_TARGET_DIR=$build
cargo build --release --package candle-llama "$@"
# One at a time, because in one build the first would get the features of gpu-time that these ask for.
for package in cupti-record candle-spans candle-budget; do
    cargo build --release --package "$package"
done
