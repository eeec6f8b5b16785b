// Attaches CUPTI to any program, records kernels for 20 ms and does nothing else, to tell what the program loses to
// CUPTI without gpu-time. The driver loads the library:
//
//   cc -O2 -std=gnu17 -shared -fPIC -o cupti_alone.so gpu/cupti_alone.c -ldl -lpthread
//   CUDA_INJECTION64_PATH=$PWD/cupti_alone.so program
//
// Begins a second after `cuInit`, so that the program has a context by then. `CUPTI` names the library (default:
// `libcupti.so.13`).

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CONCURRENT_KERNEL = 10, BUFFER_BYTES = 1 << 20, BEFORE_US = 1000000, RECORDED_US = 20000 };

static void on_call(void *none, int domain, unsigned id, const void *data) {}

static void on_request(uint8_t **buffer, size_t *bytes, size_t *max_records) {
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *bytes = BUFFER_BYTES;
    *max_records = 0;
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) { free(buffer); }

static void *record(void *none) {
    usleep(BEFORE_US);
    const char *name = getenv("CUPTI") ? getenv("CUPTI") : "libcupti.so.13";
    void *library = dlopen(name, RTLD_NOW), *subscriber;
    if (!library) {
        fprintf(stderr, "cupti_alone: %s\n", dlerror());
        return none;
    }
    int (*subscribe)() = dlsym(library, "cuptiSubscribe");
    int (*register_callbacks)() = dlsym(library, "cuptiActivityRegisterCallbacks");
    int (*enable)() = dlsym(library, "cuptiActivityEnable"), (*disable)() = dlsym(library, "cuptiActivityDisable");
    int code = subscribe(&subscriber, on_call, NULL);
    code = code ? code : register_callbacks(on_request, on_complete);
    code = code ? code : enable(CONCURRENT_KERNEL);
    usleep(RECORDED_US);
    code = code ? code : disable(CONCURRENT_KERNEL);
    if (code)
        fprintf(stderr, "cupti_alone: error %d of CUPTI\n", code);
    return none;
}

int InitializeInjection(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, record, NULL) == 0;
}
