#!/usr/bin/env bash
# Builds the programs of `examples/recipes` into one folder, each with and without timing, for x86-64 Linux.
#
#   gpu/recipes.sh [--candle] [DIR]     default: `bundle-recipes` at the root of the repository
#
# `--candle` adds candle, which needs nvcc and takes ten minutes on two cores. `CUDA_COMPUTE_CAP` chooses its
# GPU: 90, the default, is Hopper.
#
# The headers and libraries that some of them need to build come from PyPI, so no toolkit has to be installed.
# Copy the folder to a machine with an NVIDIA GPU and a CUDA toolkit 12.8 or later, and run `bundle-recipes/run.sh`
# there. No Rust is needed.
set -euo pipefail
parts=crt,cudart,cccl,curand
recipes=(c-library cubecl cuda-core cudarc cust era-cudart tokio)
if [[ ${1:-} == --candle ]]; then
    parts+=,nvcc,nvvm,cublas,nvrtc
    recipes+=(candle)
    shift
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${1:-$root/bundle-recipes}"
bundle=$(cd "${1:-$root/bundle-recipes}" && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")/recipes
toolkit=$target/toolkit
cuda=$toolkit/nvidia/cu13
limit_mib=120

# Installs the parts unless they are there, and creates a file that marks them as complete.
installed=$toolkit/complete-${parts//,/-}
if [[ ! -e $installed ]]; then
    # cuda-bindings reads the headers with libclang.
    python3 -m pip install --quiet --disable-pip-version-check --upgrade --no-compile --target "$toolkit" \
        "cuda-toolkit[$parts]==13.0.2" libclang==18.1.1

    # The packages name their libraries `libcudart.so.13`, but the linker looks for `libcudart.so` in `lib64`.
    (cd "$cuda/lib" && for library in *.so.*; do ln -sf "$library" "${library%%.so.*}.so"; done)
    ln -sfn lib "$cuda/lib64"

    # `libcuda.so` comes with the driver. To link, a stub that exports the same names is enough.
    mkdir -p "$cuda/lib/stubs"
    echo '#include <cuda.h>' | cc -E -P -I "$cuda/include" - |
        grep -oE '\bcu[A-Z][A-Za-z0-9_]* *\(' | tr -d ' (' | sort -u |
        sed 's/.*/void &(void) {}/' |
        cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$cuda/lib/stubs/libcuda.so" -x c -
    touch "$installed"
fi

# The variables by which the builds find the toolkit: candle and cuda-core, cust, era_cudart.
export CUDA_HOME=$cuda CUDA_LIBRARY_PATH=$cuda CUDA_PATH=$cuda CUDA_VERSION=13.0
export LIBCLANG_PATH=$toolkit/clang/native
BINDGEN_EXTRA_CLANG_ARGS=-I$(cc -print-file-name=include)
export BINDGEN_EXTRA_CLANG_ARGS
export NVCC=$cuda/bin/nvcc PATH=$cuda/bin:$PATH CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-90}
# Small programs, and one target folder, so that shared dependencies are built once.
export CARGO_TARGET_DIR=$target CARGO_PROFILE_RELEASE_OPT_LEVEL=s CARGO_PROFILE_RELEASE_STRIP=symbols

rm -rf "$bundle"/{bin,lib}
mkdir -p "$bundle"/{bin,lib}
cp "$root/gpu/run-recipes.sh" "$bundle/run.sh"
for name in "${recipes[@]}"; do
    echo "== $name"
    options=()
    [[ $name != candle ]] || options=(--features cuda)
    (
        # In the recipe's folder, so that the repository's `rust-toolchain.toml` applies.
        cd "$root/examples/recipes/$name"
        # era_cudart uses unstable features of Rust.
        [[ $name != era-cudart ]] || export RUSTC_BOOTSTRAP=1
        cargo build --locked --release "${options[@]}"
    )
    cp "$target/release/recipe-$name" "$target/release/recipe-$name-plain" "$bundle/bin/"
done
# The only recipe that is linked with the runtime library. The GPU machine may have another version of it.
mkdir "$bundle/lib/era-cudart"
cp --dereference "$cuda"/lib/libcudart.so.13 "$bundle/lib/era-cudart/"

size=$(du --summarize --block-size=1M "$bundle" | cut --fields=1)
((size <= limit_mib)) || { echo "\`$bundle\` is $size MiB, more than $limit_mib" >&2; exit 1; }
echo "$bundle: $size MiB"
