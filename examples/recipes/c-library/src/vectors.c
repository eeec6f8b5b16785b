// Vectors on a GPU by the CUDA runtime API and cuBLAS, as a C library would have them. Such a library
// links both. This one loads them at run time, so that it builds without a CUDA toolkit.
//
// Functions return 0, or the error of the call that failed.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(call) \
    do { \
        int error = (call); \
        if (error) return error; \
    } while (0)

struct dim3 {
    unsigned x, y, z;
};

// The declarations of the toolkit's headers.
static int (*cudaStreamCreate)(void **stream);
static int (*cudaStreamSynchronize)(void *stream);
static int (*cudaMalloc)(void **memory, size_t size);
static int (*cudaMemsetAsync)(void *memory, int value, size_t size, void *stream);
static int (*cudaMemcpyAsync)(void *to, const void *from, size_t size, int kind, void *stream);
static int (*cudaLibraryLoadData)(void **library, const void *code, void *, void *, unsigned, void *, void *,
                                  unsigned);
static int (*cudaLibraryGetKernel)(void **kernel, void *library, const char *name);
static int (*cudaLaunchKernel)(const void *kernel, struct dim3 grid, struct dim3 block, void **arguments,
                               size_t shared, void *stream);
static int (*cublasCreate)(void **blas);
static int (*cublasSetStream)(void *blas, void *stream);
static int (*cublasSgemm)(void *blas, int transpose_a, int transpose_b, int m, int n, int k,
                          const float *alpha, const float *a, int lda, const float *b, int ldb,
                          const float *beta, float *c, int ldc);

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, NOT_FOUND = -1 };

struct vectors {
    void *stream, *kernel, *blas;
    float *x, *y, *product;
    unsigned side; // of the square matrices that the vectors are to cuBLAS
};

// Returns the library of CUDA 13 or 12, or NULL.
static void *library(const char *name) {
    char file[64];
    for (int version = 13; version >= 12; --version) {
        snprintf(file, sizeof file, "%s.so.%d", name, version);
        void *found = dlopen(file, RTLD_NOW);
        if (found) return found;
    }
    fprintf(stderr, "%s\n", dlerror());
    return NULL;
}

static int load(void) {
    void *runtime = library("libcudart"), *blas = library("libcublas");
    if (!runtime || !blas) return NOT_FOUND;
#define FIND(from, function, symbol) \
    if (!(*(void **)&function = dlsym(from, symbol))) return fprintf(stderr, "no %s\n", symbol), NOT_FOUND
    FIND(runtime, cudaStreamCreate, "cudaStreamCreate");
    FIND(runtime, cudaStreamSynchronize, "cudaStreamSynchronize");
    FIND(runtime, cudaMalloc, "cudaMalloc");
    FIND(runtime, cudaMemsetAsync, "cudaMemsetAsync");
    FIND(runtime, cudaMemcpyAsync, "cudaMemcpyAsync");
    FIND(runtime, cudaLibraryLoadData, "cudaLibraryLoadData"); // since CUDA 12.8
    FIND(runtime, cudaLibraryGetKernel, "cudaLibraryGetKernel");
    FIND(runtime, cudaLaunchKernel, "cudaLaunchKernel");
    FIND(blas, cublasCreate, "cublasCreate_v2");
    FIND(blas, cublasSetStream, "cublasSetStream_v2");
    FIND(blas, cublasSgemm, "cublasSgemm_v2");
    return 0;
}

static size_t size(const struct vectors *v) { return sizeof(float) * v->side * v->side; }

int vectors_open(const char *ptx, unsigned side, struct vectors **opened) {
    struct vectors *v = calloc(1, sizeof *v);
    void *module;
    if (!v) return NOT_FOUND;
    *opened = v;
    v->side = side;
    TRY(load());
    TRY(cudaStreamCreate(&v->stream));
    TRY(cudaMalloc((void **)&v->x, size(v)));
    TRY(cudaMalloc((void **)&v->y, size(v)));
    TRY(cudaMalloc((void **)&v->product, size(v)));
    TRY(cudaMemsetAsync(v->y, 0, size(v), v->stream));
    TRY(cudaLibraryLoadData(&module, ptx, NULL, NULL, 0, NULL, NULL, 0));
    TRY(cudaLibraryGetKernel(&v->kernel, module, "saxpy"));
    TRY(cublasCreate(&v->blas));
    return cublasSetStream(v->blas, v->stream);
}

void *vectors_stream(const struct vectors *v) { return v->stream; }

int vectors_upload(struct vectors *v, const float *x) {
    return cudaMemcpyAsync(v->x, x, size(v), HOST_TO_DEVICE, v->stream);
}

// y += a * x
int vectors_add(struct vectors *v, float a) {
    unsigned len = v->side * v->side;
    void *arguments[] = {&len, &a, &v->x, &v->y};
    struct dim3 grid = {(len + 255) / 256, 1, 1}, block = {256, 1, 1};
    return cudaLaunchKernel(v->kernel, grid, block, arguments, 0, v->stream);
}

// product = x * x, as matrices
int vectors_multiply(struct vectors *v) {
    const float one = 1, zero = 0;
    int n = (int)v->side;
    return cublasSgemm(v->blas, 0, 0, n, n, n, &one, v->x, n, v->x, n, &zero, v->product, n);
}

int vectors_download(struct vectors *v, float *y, float *product) {
    TRY(cudaMemcpyAsync(y, v->y, size(v), DEVICE_TO_HOST, v->stream));
    TRY(cudaMemcpyAsync(product, v->product, size(v), DEVICE_TO_HOST, v->stream));
    return cudaStreamSynchronize(v->stream);
}
