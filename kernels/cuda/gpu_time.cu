// The kernels that the runtime launches around a measurement. Parameters and launch geometry are
// documented in src/lib.rs; ../rebuild.sh builds the PTX in ../ptx from this file.

// Flushes the L2 by reading `n16` 16-byte words, all of them zero, which leaves clean lines. A
// memset would fill the L2 with dirty lines, and the timed kernel would pay for writing them back.
//
// With four loads in flight in every thread that an SM can hold, the latency of the memory is
// hidden. More loads would need more than the 32 registers per thread that allow full occupancy.
extern "C" __global__ void
gpu_time_flush_read(const uint4* buf, unsigned long long n16, unsigned int* sink) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned int seen = 0;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n16;
         i += 4 * stride) {
        uint4 v[4];
        // The last round is predicated instead of being a separate loop, so that its loads overlap
        // too.
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const unsigned long long j = i + k * stride;
            // `.cg` caches in the L2 only, which leaves the L1 to the timed kernel.
            v[k] = j < n16 ? __ldcg(buf + j) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) seen |= v[k].x | v[k].y | v[k].z | v[k].w;
    }
    // Never taken with a buffer of zeros, but the compiler does not know that and keeps the loads.
    // An unconditional store would leave a dirty line.
    if (seen != 0) *sink = seen;
}

static __device__ unsigned long long globaltimer() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

// Holds the stream until the host has released `ticket` or a limit has passed. One thread.
//
// Tickets increase and are never reset. With a flag that is reset for each hold, a kernel that is
// not scheduled between a release and the next reset would miss the release.
//
// There is no __nanosleep between polls. Each poll waits for its own read over the bus, so only one
// small read is in flight at any time, which does not disturb other work. A sleep may last up to
// twice the requested time, all of which would add to the release latency.
extern "C" __global__ void
gpu_time_hold(volatile unsigned long long* released, unsigned long long ticket,
              unsigned long long max_ns, unsigned long long max_cycles,
              unsigned long long* expired) {
    // Two clocks, because either may not advance (the timer of a virtual GPU, the counter of an
    // SM). If one jumps back, as the counter may when the kernel moves to another SM, the hold ends
    // early and is reported as expired, which is the safe direction.
    const unsigned long long start_ns = globaltimer();
    const unsigned long long start_cycles = clock64();
    // A volatile load is a relaxed load at system scope, so it sees the host's store.
    while (*released < ticket) {
        if (globaltimer() - start_ns >= max_ns ||
            (unsigned long long)clock64() - start_cycles >= max_cycles) {
            *expired = ticket;
            __threadfence_system();
            return;
        }
    }
}

// Reads from the L2 as `.cg` does, but the compiler cannot merge two such reads of the same
// address.
static __device__ unsigned int read_line(const unsigned int* line) {
    unsigned int word;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(line) : "memory");
    return word;
}

// Times reads of single lines one after another, each twice, to determine which lines the L2 holds.
// One block: its first thread reads, and all threads copy the results.
//
// Lines are 1,024 bytes apart, so that no line is fetched along with another, and are read in the
// order of a full-period generator, so that none can be prefetched. The second read of a line is
// always a hit.
//
// Times are in cycles, because `%globaltimer` advances in steps of at least 32 ns, a considerable
// part of the duration of a hit.
extern "C" __global__ void
gpu_time_line_latencies(const unsigned int* buf, unsigned int lines, unsigned int* cycles,
                        volatile unsigned long long* done, unsigned long long ticket) {
    __shared__ unsigned int taken[2 * 2048];
    const unsigned long long step = 1024 / sizeof(unsigned int);
    if (threadIdx.x == 0 && lines != 0) {
        // Always 0, because `lines` is a power of two. The compiler does not know that, so masking
        // a word with it forces a wait for the word.
        const unsigned int none = lines & (lines - 1);
        // A flush also evicts address translations. Untimed reads next to the first and the last
        // line fetch them here, so that a hit is not mistaken for a miss.
        unsigned int line =
            (read_line(buf + step / 2) | read_line(buf + (lines - 1) * step + step / 2)) & none;
        for (unsigned int i = 0; i < lines; ++i) {
            const long long start = clock64();
            if ((read_line(buf + line * step) & none) != 0) break;
            const long long middle = clock64();
            if ((read_line(buf + line * step) & none) != 0) break;
            const long long end = clock64();
            taken[i] = (unsigned int)(middle - start);
            taken[lines + i] = (unsigned int)(end - middle);
            line = (line * 1664525 + 1013904223) & (lines - 1);
        }
    }
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < 2 * lines; i += blockDim.x) cycles[i] = taken[i];
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *done = ticket;
}

// Does nothing, for calibration: the time between two events around it shows the bias of a pair.
extern "C" __global__ void gpu_time_empty() {}
