// Kernels of known duration and traffic, for tests, examples and benches. Parameters are documented
// in src/workloads.rs; ../rebuild.sh builds the PTX in ../ptx from this file.

static __device__ unsigned long long globaltimer() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

// Spins for `ns` nanoseconds. One thread.
extern "C" __global__ void spin_ns(unsigned long long ns) {
    // The timer advances in steps of 32 ns on some GPUs and 1,024 ns on others. Starting at a step
    // makes `ns` a lower bound.
    const unsigned long long entry = globaltimer();
    unsigned long long start;
    do {
        start = globaltimer();
    } while (start == entry);
    while (globaltimer() - start < ns) {
    }
}

// Does nothing.
extern "C" __global__ void empty() {}

// Computes y = a * x + y for `n` elements.
extern "C" __global__ void saxpy(unsigned int n, float a, const float* x, float* y) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += stride) {
        // An explicit fma, so that the host can check for the same bits.
        y[i] = fmaf(a, x[i], y[i]);
    }
}

// Reads `n16` 16-byte words. Writes nothing if all are zero.
extern "C" __global__ void read_f4(const float4* in, unsigned long long n16, float* out) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    float seen = 0;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n16;
         i += stride) {
        const float4 v = in[i];
        seen += v.x + v.y + v.z + v.w;
    }
    if (seen != 0) *out = seen;
}

// Copies `n16` 16-byte words.
extern "C" __global__ void copy_f4(const float4* in, float4* out, unsigned long long n16) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n16;
         i += stride) {
        out[i] = in[i];
    }
}
