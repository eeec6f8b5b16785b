"""Compiles one .cu file to PTX: `python nvrtc.py IN.cu OUT.ptx ARCHITECTURE`.

Runs in the environment that rebuild.sh creates. NVRTC needs neither a GPU nor a driver.
"""

import ctypes
import sys
from pathlib import Path

OPTIONS = [
    # With C++11 or later, NVRTC includes a header that adds about forty unused variables to every
    # module, with hashes in their names.
    b"--std=c++03",
]


def load():
    found = [p for d in sys.path for p in Path(d).glob("nvidia/cuda_nvrtc/lib/libnvrtc.so.12")]
    if not found:
        sys.exit("`libnvrtc.so.12` is not installed for this Python: run `rebuild.sh`, which installs it")
    return ctypes.CDLL(str(found[0]))


def text(program, size_of, get):
    """Returns a string of the program, using NVRTC's functions for its size and its content."""
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    get(program, buffer)
    return buffer.value


def compile_ptx(source, architecture):
    nvrtc = load()
    program = ctypes.c_void_p()
    # The file name without its folder, so that the output does not depend on the machine.
    name = source.name.encode()
    if nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.read_bytes(), name, 0, None, None
    ):
        sys.exit(f"NVRTC cannot create a program from `{source}`")
    arguments = [f"--gpu-architecture={architecture}".encode(), *OPTIONS]
    options = (ctypes.c_char_p * len(arguments))(*arguments)
    failed = nvrtc.nvrtcCompileProgram(program, len(arguments), options)
    log = text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    # Warnings are errors, because the log of a successful build is not read.
    if failed or log:
        sys.exit(f"`{source}` does not compile cleanly:\n{log.decode()}")
    return text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: nvrtc.py IN.cu OUT.ptx ARCHITECTURE")
    Path(sys.argv[2]).write_bytes(compile_ptx(Path(sys.argv[1]), sys.argv[3]))
