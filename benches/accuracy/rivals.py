"""What other tools say of the same kernels: NVBench, Triton's do_bench, and events through PyTorch.

    rivals.py FOLDER [WHEELS]

What is not installed may lie as wheels in the folder WHEELS: those for this Python are unpacked into
FOLDER. FOLDER holds `workloads.ptx` and `cases.json`, a list of {"case", "kernel", "ns" or "bytes", "cold"}.
Writes `rivals.json` there: {"readings": [{"tool", "case", "figure"}], "left_out": [{"case", "why"}]},
times in nanoseconds. A tool that is not installed is left out.
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
        raise RuntimeError(f"the driver answers {status}")


class Case:
    """A kernel of `workloads.ptx` with its arguments, launched by the driver as ours are."""

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
    """A pair of events around each launch, as found, with nothing that holds the stream."""
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
    """Flushes by writing, before each run: spins have nothing in the cache, so they do not care."""
    from triton.testing import do_bench

    stream = torch.cuda.current_stream().cuda_stream
    for case in (case for case in cases if case.cold or not hasattr(case, "buffers")):
        times = do_bench(lambda: case.launch(stream), warmup=10, rep=40, return_mode="all")
        record("do_bench", case, [ms * 1e6 for ms in times])


def nvbench(torch, cases):
    """Flushes by writing as well, and holds the stream."""
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


def carry(wheels):
    """Makes what lies there importable, behind what is installed."""
    tag = f"-cp{sys.version_info.major}{sys.version_info.minor}-"
    unpacked = os.path.join(folder, "wheels")
    for wheel in (path for path in glob.glob(os.path.join(wheels, "*.whl")) if tag in path):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
    sys.path.append(unpacked)


def main():
    if len(sys.argv) > 2:
        carry(sys.argv[2])
    import torch

    torch.zeros(1, device="cuda")  # makes the primary context current
    module = ctypes.c_void_p()
    with open(os.path.join(folder, "workloads.ptx"), "rb") as file:
        check(cuda.cuModuleLoadData(ctypes.byref(module), file.read() + b"\0"))
    with open(os.path.join(folder, "cases.json")) as file:
        cases = [Case(torch, module, case) for case in json.load(file)]
    for tool in (torch_events, do_bench, nvbench):
        try:
            tool(torch, cases)
        except Exception as why:  # one tool's trouble is not the others'
            left_out.append({"case": tool.__name__, "why": f"{type(why).__name__}: {why}"})


try:
    main()
except Exception as why:
    left_out.append({"case": "all", "why": f"{type(why).__name__}: {why}"})
# Not to stdout, where the tools print too.
with open(os.path.join(folder, "rivals.json"), "w") as file:
    json.dump({"readings": readings, "left_out": left_out}, file)
