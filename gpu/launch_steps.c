// Counts the instructions that a thread executes in driver calls, to tell what CUPTI adds to them. Unlike times, such
// counts do not depend on the machine's pace.
//
//   cc -O2 -std=gnu17 -o launch_steps gpu/launch_steps.c -ldl
//   ./launch_steps context count subscribe count record launch off count detach count
//
// Does one step for each word and prints a line for each `count`. `CUPTI` names the library (default:
// `libcupti.so.13`). Needs x86-64, and a machine that allows `ptrace`.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONCURRENT_KERNEL = 10, DRIVER_API = 1, LAUNCH_KERNEL = 307, NON_BLOCKING = 1 };
enum { BYTES = 4096, BUFFER_BYTES = 1 << 20, WARM_UP = 64 };

// The breakpoints around the code whose instructions are counted.
#define BREAK __asm__ volatile("int3" ::: "memory")

static const char *PTX = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";

static void *driver, *cupti;
// The number of instructions between the last two breakpoints, which the parent process writes.
static volatile long *steps;
static const char *word;

static void *function_of(void *library, const char *name) {
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "no function `%s`\n", name);
        exit(3);
    }
    return function;
}

static void check(int code, const char *name) {
    if (code) {
        fprintf(stderr, "%s: %s: error %d\n", word, name, code);
        exit(3);
    }
}

// Calls a function of the driver or of CUPTI, whose arguments are integers and pointers.
#define CALL(library, name, ...) check(((int (*)())function_of(library, #name))(__VA_ARGS__), #name)

static void on_call(void *none, int domain, unsigned id, const void *data) {}

static void on_request(uint8_t **buffer, size_t *bytes, size_t *max_records) {
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *bytes = BUFFER_BYTES;
    *max_records = 0;
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) { free(buffer); }

static void *context, *module, *kernel, *stream, *event, *subscriber;
static uint64_t memory;
static char host[BYTES];
static int (*launch_kernel)(), (*copy_to_device)(), (*set_bytes)(), (*record_event)(), (*set_current)(),
    (*allocate_async)(), (*free_async)();

static void create_context(void) {
    int device;
    CALL(driver, cuDeviceGet, &device, 0);
    CALL(driver, cuDevicePrimaryCtxRetain, &context, device);
    CALL(driver, cuCtxSetCurrent, context);
    CALL(driver, cuModuleLoadData, &module, PTX);
    CALL(driver, cuModuleGetFunction, &kernel, module, "empty");
    CALL(driver, cuStreamCreate, &stream, NON_BLOCKING);
    CALL(driver, cuEventCreate, &event, 0);
    CALL(driver, cuMemAlloc_v2, &memory, (size_t)BYTES);
    launch_kernel = function_of(driver, "cuLaunchKernel");
    copy_to_device = function_of(driver, "cuMemcpyHtoDAsync_v2");
    set_bytes = function_of(driver, "cuMemsetD8Async");
    record_event = function_of(driver, "cuEventRecord");
    set_current = function_of(driver, "cuCtxSetCurrent");
    allocate_async = function_of(driver, "cuMemAllocAsync");
    free_async = function_of(driver, "cuMemFreeAsync");
}

static int launch(void) { return launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL); }
static int copy(void) { return copy_to_device(memory, host, (size_t)64, stream); }
static int set(void) { return set_bytes(memory, 0, (size_t)64, stream); }
static int event_record(void) { return record_event(event, stream); }
static int make_current(void) { return set_current(context); }
static int allocate(void) {
    uint64_t block;
    int code = allocate_async(&block, (size_t)BYTES, stream);
    return code ? code : free_async(block, stream);
}

static const struct {
    const char *name;
    int (*call)(void);
} COUNTED[] = {{"launch", launch},         {"copy", copy},           {"set", set},
               {"event", event_record}, {"current", make_current}, {"allocation", allocate}};

// Prints the instructions of each call after some that are not counted.
static void count(void) {
    for (size_t i = 0; i < sizeof COUNTED / sizeof *COUNTED; i++) {
        for (int warm_up = 0; warm_up < WARM_UP; warm_up++)
            check(COUNTED[i].call(), COUNTED[i].name);
        BREAK;
        int code = COUNTED[i].call();
        BREAK;
        check(code, COUNTED[i].name);
        CALL(driver, cuCtxSynchronize);
        printf(" %s %ld", COUNTED[i].name, *steps);
    }
    puts("");
    fflush(stdout);
}

static void callbacks(int on) { CALL(cupti, cuptiEnableCallback, on, subscriber, DRIVER_API, LAUNCH_KERNEL); }

static void step(void) {
    static const char *const WORDS = "context, subscribe, unsubscribe, callbacks, silence, record, off, flush, launch, "
                                     "detach, count";
    if (!strcmp(word, "context"))
        create_context();
    else if (!strcmp(word, "subscribe")) {
        CALL(cupti, cuptiSubscribe, &subscriber, on_call, NULL);
        CALL(cupti, cuptiActivityRegisterCallbacks, on_request, on_complete);
    } else if (!strcmp(word, "unsubscribe"))
        CALL(cupti, cuptiUnsubscribe, subscriber);
    else if (!strcmp(word, "callbacks"))
        callbacks(1);
    else if (!strcmp(word, "silence"))
        callbacks(0);
    else if (!strcmp(word, "record"))
        CALL(cupti, cuptiActivityEnable, CONCURRENT_KERNEL);
    else if (!strcmp(word, "off"))
        CALL(cupti, cuptiActivityDisable, CONCURRENT_KERNEL);
    else if (!strcmp(word, "flush"))
        CALL(cupti, cuptiActivityFlushAll, 1);
    else if (!strcmp(word, "launch")) {
        check(launch(), word);
        CALL(driver, cuCtxSynchronize);
    } else if (!strcmp(word, "detach"))
        CALL(cupti, cuptiFinalize);
    else if (!strcmp(word, "count"))
        count();
    else {
        fprintf(stderr, "unknown step `%s`: expected one of %s\n", word, WORDS);
        exit(2);
    }
}

// Runs in the parent: steps through the child's code between each two breakpoints.
static int step_through(pid_t child) {
    int status, is_counting = 0;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status);
        siginfo_t cause;
        ptrace(PTRACE_GETSIGINFO, child, NULL, &cause);
        if (signal == SIGTRAP && cause.si_code == SI_KERNEL) { // a breakpoint
            is_counting = !is_counting;
            if (is_counting)
                *steps = 0;
        } else if (signal == SIGTRAP)
            ++*steps;
        ptrace(is_counting ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, signal == SIGTRAP ? 0 : signal);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int words, char **arguments) {
    steps = mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child)
        return step_through(child);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);

    const char *library = getenv("CUPTI") ? getenv("CUPTI") : "libcupti.so.13";
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    cupti = dlopen(library, RTLD_NOW);
    if (!driver || !cupti) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    word = "start";
    CALL(driver, cuInit, 0);
    for (int i = 1; i < words; i++) {
        word = arguments[i];
        if (strcmp(word, "count"))
            printf("%s ", word);
        step();
    }
}
