// The kernels that the runtime puts around a measurement. Parameters and launch geometry are
// documented in src/lib.rs; the PTX in ../ptx is built from this file by ../rebuild.sh.

// Evicts the L2 by reading `n16` 16-byte words, all of them zero, so that what it leaves is clean:
// a memset would fill the L2 with dirty lines, and the timed kernel would pay for writing them back.
//
// Four loads in flight in every thread that an SM can hold cover the latency of the memory. More
// would take more than the 32 registers that let an SM hold that many threads.
extern "C" __global__ void
gpu_time_flush_read(const uint4* buf, unsigned long long n16, unsigned int* sink) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned int seen = 0;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n16;
         i += 4 * stride) {
        uint4 v[4];
        // The last round is predicated, not a loop of its own: its loads overlap too.
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const unsigned long long j = i + k * stride;
            // `.cg`: through the L2 only. The L1 is the timed kernel's own business.
            v[k] = j < n16 ? __ldcg(buf + j) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) seen |= v[k].x | v[k].y | v[k].z | v[k].w;
    }
    // Never taken on a buffer of zeros, but the compiler cannot know that and keeps the loads.
    // An unconditional store would leave a dirty line.
    if (seen != 0) *sink = seen;
}

static __device__ unsigned long long globaltimer() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

// Holds the stream until the host has released `ticket`, or a bound has passed. One thread.
//
// Tickets rise and are never taken back. With a flag that is reset for each hold, a kernel that has
// not been scheduled between a release and the next reset would miss the release.
//
// No __nanosleep between the polls: each poll waits for its own read over the bus, so there is one
// small read in flight at any time, which disturbs nobody. A sleep may last up to twice what it is
// asked for, and all of it would come on top of the release latency.
extern "C" __global__ void
gpu_time_hold(volatile unsigned long long* released, unsigned long long ticket,
              unsigned long long max_ns, unsigned long long max_cycles,
              unsigned long long* expired) {
    // Two clocks, because either may stand still (a virtual GPU's timer, an SM's counter). One that
    // jumps back, as the counter may when the kernel is moved to another SM, ends the hold early
    // and says so, which is the harmless direction.
    const unsigned long long start_ns = globaltimer();
    const unsigned long long start_cycles = clock64();
    // A volatile load is a relaxed one at system scope: it sees the host's store.
    while (*released < ticket) {
        if (globaltimer() - start_ns >= max_ns ||
            (unsigned long long)clock64() - start_cycles >= max_cycles) {
            *expired = ticket;
            __threadfence_system();
            return;
        }
    }
}

// From the L2, as with `.cg`; but of two such reads of one address none is left out.
static __device__ unsigned int read_line(const unsigned int* line) {
    unsigned int word;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(line) : "memory");
    return word;
}

// Times reads of single lines one after the other, each twice, to tell lines that the L2 holds from
// lines that it does not. One block: its first thread reads, all of them hand over.
//
// Lines are 1,024 bytes apart, so that none is fetched along with another, and are taken in the
// order of a generator of full period, so that none can be fetched ahead. The second read of a line
// is a hit whatever the first one was.
//
// In cycles, because `%globaltimer` moves in steps of 32 ns and more, a fair part of what a hit takes.
extern "C" __global__ void
gpu_time_line_latencies(const unsigned int* buf, unsigned int lines, unsigned int* cycles,
                        volatile unsigned long long* done, unsigned long long ticket) {
    __shared__ unsigned int taken[2 * 2048];
    const unsigned long long step = 1024 / sizeof(unsigned int);
    if (threadIdx.x == 0 && lines != 0) {
        // 0, since `lines` is a power of two; but the compiler cannot know that, and to mask a word with
        // it is to wait for the word.
        const unsigned int none = lines & (lines - 1);
        // What evicts lines evicts the translation of their addresses as well. It is fetched here, by
        // untimed reads beside the first and the last line, lest a hit pass for a miss.
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

// Calibration: what a pair of events reads around a kernel that does nothing.
extern "C" __global__ void gpu_time_empty() {}
