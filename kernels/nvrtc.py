"""Compiles one .cu file to PTX: `python nvrtc.py IN.cu OUT.ptx ARCHITECTURE`.

Runs in the environment that rebuild.sh makes. NVRTC needs neither a GPU nor a driver.
"""

import ctypes
import sys
from pathlib import Path

OPTIONS = [
    # From C++11 on NVRTC includes a header of its own that leaves some forty unused variables in
    # every module, under names that hold a hash.
    b"--std=c++03",
]


def load():
    found = [p for d in sys.path for p in Path(d).glob("nvidia/cuda_nvrtc/lib/libnvrtc.so.12")]
    if not found:
        sys.exit("no `libnvrtc.so.12` beside this Python: run `rebuild.sh`, which installs it")
    return ctypes.CDLL(str(found[0]))


def text(program, size_of, get):
    """Reads one of the program's strings, each of which has a call for its size and one for itself."""
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    get(program, buffer)
    return buffer.value


def compile_ptx(source, architecture):
    nvrtc = load()
    program = ctypes.c_void_p()
    # The name alone, never a path: what the compiler is told must not depend on the machine.
    name = source.name.encode()
    if nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.read_bytes(), name, 0, None, None
    ):
        sys.exit(f"NVRTC refused `{source}`")
    given = [f"--gpu-architecture={architecture}".encode(), *OPTIONS]
    options = (ctypes.c_char_p * len(given))(*given)
    failed = nvrtc.nvrtcCompileProgram(program, len(given), options)
    log = text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    # A warning counts as an error: nobody reads the log of a build that passed.
    if failed or log:
        sys.exit(f"`{source}` does not compile cleanly:\n{log.decode()}")
    return text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: nvrtc.py IN.cu OUT.ptx ARCHITECTURE")
    Path(sys.argv[2]).write_bytes(compile_ptx(Path(sys.argv[1]), sys.argv[3]))
