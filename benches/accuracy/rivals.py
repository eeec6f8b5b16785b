"""Times the same kernels with other tools: NVBench, Triton's do_bench, and events through PyTorch.

    rivals.py FOLDER [WHEELS]

FOLDER contains `workloads.ptx` and `cases.json`, a list of
{"case", "kernel", "ns" or "bytes", "cold"}. The script writes `rivals.json` there, with times in
nanoseconds: {"readings": [{"tool", "case", "figure"}], "left_out": [{"case", "why"}]}. Tools that are
not installed are listed in `left_out`. WHEELS is a folder of wheels; those for this version of Python
are unpacked into FOLDER and used for tools that are not installed.
"""

import ctypes
import glob
import json
import os
import sys
import zipfile

folder = sys.argv[1]
readings, left_out = [], []
cuda = ctypes.CDLL("libcuda.so.1")


def check(status):
    if status != 0:
        raise RuntimeError(f"driver error {status}")


class Case:
    """A kernel of `workloads.ptx` with its arguments, launched through the driver API."""

    def __init__(self, torch, module, case):
        self.name, self.cold = case["case"], case["cold"]
        self.function = ctypes.c_void_p()
        name = case["kernel"].encode()
        check(cuda.cuModuleGetFunction(ctypes.byref(self.function), module, name))
        if "ns" in case:
            self.grid, self.block = 1, 1
            self.arguments = [ctypes.c_uint64(case["ns"])]
        else:
            self.grid, self.block = 528, 512
            make = lambda: torch.zeros(case["bytes"], dtype=torch.uint8, device="cuda")
            self.buffers = make(), make()
            self.arguments = [ctypes.c_uint64(b.data_ptr()) for b in self.buffers]
            self.arguments.append(ctypes.c_uint64(case["bytes"] // 16))
        addresses = [ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in self.arguments]
        self.parameters = (ctypes.c_void_p * len(addresses))(*addresses)

    def launch(self, stream):
        one = ctypes.c_uint(1)
        check(cuda.cuLaunchKernel(
            self.function, ctypes.c_uint(self.grid), one, one, ctypes.c_uint(self.block), one, one,
            ctypes.c_uint(0), ctypes.c_void_p(stream), self.parameters, None,
        ))


def figure(times_ns):
    times = sorted(times_ns)
    at = lambda q: times[round((len(times) - 1) * q)]
    return {"median": at(0.5), "p5": at(0.05), "p95": at(0.95)}


def record(tool, case, times_ns):
    readings.append({"tool": tool, "case": case.name, "figure": figure(times_ns)})


def torch_events(torch, cases):
    """Times each launch with a pair of events, without flushing the L2 or holding the stream."""
    stream = torch.cuda.current_stream()
    for case in (case for case in cases if not case.cold):
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(220)]
        for start, stop in pairs:
            start.record()
            case.launch(stream.cuda_stream)
            stop.record()
        torch.cuda.synchronize()
        record("torch events", case, [a.elapsed_time(b) * 1e6 for a, b in pairs[20:]])


def do_bench(torch, cases):
    """Flushes the L2 by writing before each run. This does not affect spins, which use no memory."""
    from triton.testing import do_bench

    stream = torch.cuda.current_stream().cuda_stream
    for case in (case for case in cases if case.cold or not hasattr(case, "buffers")):
        times = do_bench(lambda: case.launch(stream), warmup=10, rep=40, return_mode="all")
        record("do_bench", case, [ms * 1e6 for ms in times])


def nvbench(torch, cases):
    """Flushes the L2 by writing as well, and holds the stream."""
    import cuda.bench as bench
    from cuda.bench.results import BenchmarkResult

    def register(case):
        def run(state):
            state.exec(lambda launch: case.launch(launch.get_stream().addressof()), batched=False)

        run.__name__ = case.name
        benchmark = bench.register(run)
        benchmark.set_name(case.name)
        benchmark.set_min_samples(200)
        benchmark.set_timeout(1.0)

    chosen = [case for case in cases if case.cold or not hasattr(case, "buffers")]
    for case in chosen:
        register(case)
    path = os.path.join(folder, "nvbench.json")
    bench.run_all_benchmarks(["rivals", "-d", "0", "--jsonbin", path])
    results = BenchmarkResult.from_json(path)
    for case in chosen:
        for state in results[case.name].states:
            if state.samples is None:
                raise RuntimeError(f"no samples of {case.name}: {state.skip_reason}")
            record("NVBench", case, [s * 1e9 for s in state.samples])


def add_wheels(wheels):
    """Makes the wheels in a folder importable, after installed packages."""
    tag = f"-cp{sys.version_info.major}{sys.version_info.minor}-"
    unpacked = os.path.join(folder, "wheels")
    for wheel in (path for path in glob.glob(os.path.join(wheels, "*.whl")) if tag in path):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
    sys.path.append(unpacked)


def main():
    if len(sys.argv) > 2:
        add_wheels(sys.argv[2])
    import torch

    torch.zeros(1, device="cuda")  # creates the primary context and makes it current
    module = ctypes.c_void_p()
    with open(os.path.join(folder, "workloads.ptx"), "rb") as file:
        check(cuda.cuModuleLoadData(ctypes.byref(module), file.read() + b"\0"))
    with open(os.path.join(folder, "cases.json")) as file:
        cases = [Case(torch, module, case) for case in json.load(file)]
    for tool in (torch_events, do_bench, nvbench):
        try:
            tool(torch, cases)
        except Exception as why:  # continue with the other tools
            left_out.append({"case": tool.__name__, "why": f"{type(why).__name__}: {why}"})


try:
    main()
except Exception as why:
    left_out.append({"case": "all", "why": f"{type(why).__name__}: {why}"})
# Not to stdout, because the tools print there.
with open(os.path.join(folder, "rivals.json"), "w") as file:
    json.dump({"readings": readings, "left_out": left_out}, file)
