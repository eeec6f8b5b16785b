// The kernel that requires compute capability 8.0. Parameters and launch geometry are documented in
// src/lib.rs; ../rebuild.sh builds the PTX in ../ptx from this file.

// Discards `lines` lines of 128 bytes from the L2 without writing them back. Their content is
// indeterminate afterwards.
//
// This is separate from the kernel that writes the lines: a line discarded while others are still
// being written would make room for them, and they would evict nothing.
extern "C" __global__ void gpu_time_discard(char* buf, unsigned long long lines) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < lines;
         i += stride) {
        asm volatile("discard.global.L2 [%0], 128;" : : "l"(buf + 128 * i) : "memory");
    }
}
