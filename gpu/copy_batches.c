// Prints the records that CUPTI returns for `cuMemcpyBatchAsync`, without gpu-time. On the machine with the GPU:
//
//   cc -O2 -std=gnu17 -o copy_batches gpu/copy_batches.c -ldl
//   ./copy_batches
//
// `CUPTI` names the library (default: `libcupti.so.13`). Needs a driver for CUDA 13.0.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t Address;
typedef void *Handle;

// From `cuda.h`: the source is read in the order of the stream.
typedef struct {
    int order, source_type, source_id, target_type, target_id;
    unsigned flags;
} Attributes;

// The beginning that all versions of the record of a copy have in common.
typedef struct __attribute__((packed)) {
    uint32_t kind;
    uint8_t copy_kind, source_kind, target_kind, flags;
    uint64_t bytes, start_ns, end_ns;
    uint32_t device, context, stream, correlation;
} Copy;

// The data of a callback.
typedef struct {
    int site;
    const char *function, *params, *result, *symbol;
    Handle context;
    uint32_t context_id;
    uint64_t *data;
    uint32_t correlation;
} Call;

enum { DRIVER_API = 1, ENTER = 0 };
enum { MEMCPY = 1, BUFFER_BYTES = 1 << 20, COPIES = 5, STEP = 4096, SPACE = 1 << 22, STREAM_ORDER = 1 };

static int (*next_record)();
static unsigned records;

static void check(int code, const char *what) {
    if (code) {
        fprintf(stderr, "copy_batches: error %d of %s\n", code, what);
        exit(1);
    }
}

static void *symbol(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "copy_batches: %s\n", dlerror());
        exit(1);
    }
    return found;
}

// Without callbacks, CUPTI numbers the copies by themselves.
static void on_call(void *none, int domain, unsigned id, const Call *call) {
    if (call->site == ENTER && strstr(call->function, "Batch"))
        printf("  %s has the correlation id %u\n", call->function, call->correlation);
}

static void on_request(uint8_t **buffer, size_t *bytes, size_t *max_records) {
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *bytes = BUFFER_BYTES;
    *max_records = 0;
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) {
    for (void *record = NULL; next_record(buffer, valid, &record) == 0;) {
        const Copy *copy = record;
        if (copy->kind != MEMCPY)
            continue;
        records++;
        printf("  %8llu bytes, correlation id %u\n", (unsigned long long)copy->bytes, copy->correlation);
    }
    free(buffer);
}

int main(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *cupti = dlopen(getenv("CUPTI") ? getenv("CUPTI") : "libcupti.so.13", RTLD_NOW);
    int (*flush)() = symbol(cupti, "cuptiActivityFlushAll");
    next_record = symbol(cupti, "cuptiActivityGetNextRecord");
    Handle subscriber, context, stream;
    int device;
    check(((int (*)())symbol(driver, "cuInit"))(0), "cuInit");
    check(((int (*)())symbol(cupti, "cuptiSubscribe"))(&subscriber, on_call, NULL), "cuptiSubscribe");
    check(((int (*)())symbol(cupti, "cuptiEnableDomain"))(1, subscriber, DRIVER_API), "cuptiEnableDomain");
    int (*register_callbacks)() = symbol(cupti, "cuptiActivityRegisterCallbacks");
    check(register_callbacks(on_request, on_complete), "cuptiActivityRegisterCallbacks");
    check(((int (*)())symbol(cupti, "cuptiActivityEnable"))(MEMCPY), "cuptiActivityEnable");
    check(((int (*)())symbol(driver, "cuDeviceGet"))(&device, 0), "cuDeviceGet");
    check(((int (*)())symbol(driver, "cuDevicePrimaryCtxRetain"))(&context, device), "cuDevicePrimaryCtxRetain");
    check(((int (*)())symbol(driver, "cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
    check(((int (*)())symbol(driver, "cuStreamCreate"))(&stream, 1), "cuStreamCreate");

    Address sources[COPIES], targets[COPIES];
    size_t sizes[COPIES];
    int (*allocate)(Address *, size_t) = symbol(driver, "cuMemAlloc_v2");
    for (int at = 0; at < COPIES; at++) {
        sizes[at] = (at + 1) * STEP;
        check(allocate(&sources[at], SPACE), "cuMemAlloc");
        check(allocate(&targets[at], SPACE), "cuMemAlloc");
    }
    void *pinned;
    check(((int (*)(void **, size_t, unsigned))symbol(driver, "cuMemHostAlloc"))(&pinned, SPACE, 0), "cuMemHostAlloc");

    int (*synchronize)(Handle) = symbol(driver, "cuStreamSynchronize");
    int (*look_up)(const char *, void **, int, uint64_t, void *) = symbol(driver, "cuGetProcAddress_v2");
    int (*of_12_8)(Address *, Address *, size_t *, size_t, Attributes *, size_t *, size_t, size_t *, Handle) = NULL;
    int (*of_13_0)(Address *, Address *, size_t *, size_t, Attributes *, size_t *, size_t, Handle) = NULL;
    check(look_up("cuMemcpyBatchAsync", (void **)&of_12_8, 12080, 0, NULL), "cuGetProcAddress");
    check(look_up("cuMemcpyBatchAsync", (void **)&of_13_0, 13000, 0, NULL), "cuGetProcAddress");

    Attributes attributes = {.order = STREAM_ORDER};
    size_t first = 0, failed;
    const char *titles[] = {"5 copies on the device, CUDA 12.8", "5 copies on the device, CUDA 13.0",
                            "one of 5 copies from and one to pinned memory", "a batch of one"};
    for (int batch = 0; batch < 4; batch++) {
        size_t copies = batch == 3 ? 1 : COPIES;
        if (batch == 2) {
            sources[0] = (Address)(uintptr_t)pinned;
            targets[COPIES - 1] = (Address)(uintptr_t)pinned + SPACE / 2;
        }
        printf("%s:\n", titles[batch]);
        records = 0;
        int code = batch == 0 ? of_12_8(targets, sources, sizes, copies, &attributes, &first, 1, &failed, stream)
                              : of_13_0(targets, sources, sizes, copies, &attributes, &first, 1, stream);
        check(code, "cuMemcpyBatchAsync");
        check(synchronize(stream), "cuStreamSynchronize");
        check(flush(1), "cuptiActivityFlushAll");
        printf("  %u records for %zu copies\n", records, copies);
    }
    return 0;
}
