// Counts the live heap memory of a process by the library that allocated it, to tell the runtime's memory from
// that of the driver and of CUPTI.
//
//   cc -O2 -shared -fPIC -o allocation_owners.so gpu/allocation_owners.c -ldl -lpthread
//   LD_PRELOAD=$PWD/allocation_owners.so GPU_TIME_RECORD=20ms/1s bundle/bin/scenario soak/run 240s
//
// Prints a line to stderr every 20 s: for each library its bytes and blocks, and what the C library's allocator has.
// Blocks of `posix_memalign` and `aligned_alloc` are not counted. Needs glibc.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern void *__libc_realloc(void *, size_t);

enum { SECONDS = 20, MOST_OWNERS = 64, NAME = 48, PAGES = 4096, LINE = 4096, LEAST_SHOWN = 50000 };

// In front of each counted block. Its size keeps the alignment of `malloc`.
struct head {
    uint64_t mark;
    uint64_t owner;
    uint64_t size;
    uint64_t padding;
};
static const uint64_t MARK = 0x6f776e65725f6d61;

// A library.
static struct {
    char name[NAME];
    atomic_llong bytes, blocks;
} owners[MOST_OWNERS];
static atomic_int owner_count;
static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;

// The owners of the pages of code that allocate.
static struct {
    _Atomic uint64_t page;
    atomic_int owner;
} known[PAGES];

// Set while this thread looks up a library, which may allocate. That counts for the first owner.
static __thread int is_looking;

static int owner_of(void *code) {
    uint64_t page = (uint64_t)code >> 12;
    unsigned at = page * 0x9E3779B97F4A7C15 >> 52;
    if (atomic_load(&known[at].page) == page)
        return atomic_load(&known[at].owner);
    if (is_looking)
        return 0;
    is_looking = 1;
    Dl_info info;
    const char *name = "unknown";
    if (dladdr(code, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        name = slash ? slash + 1 : info.dli_fname;
    }
    pthread_mutex_lock(&owners_lock);
    int count = atomic_load(&owner_count), owner = 0;
    while (owner < count && strncmp(owners[owner].name, name, NAME - 1))
        owner++;
    if (owner == MOST_OWNERS)
        owner = 0;
    else if (owner == count) {
        strncpy(owners[owner].name, name, NAME - 1);
        atomic_store(&owner_count, count + 1);
    }
    atomic_store(&known[at].owner, owner);
    atomic_store(&known[at].page, page);
    pthread_mutex_unlock(&owners_lock);
    is_looking = 0;
    return owner;
}

static void *allocate(size_t size, void *code) {
    if (size > SIZE_MAX - sizeof(struct head))
        return NULL;
    struct head *head = __libc_malloc(sizeof *head + size);
    if (!head)
        return NULL;
    *head = (struct head){MARK, owner_of(code), size, 0};
    atomic_fetch_add(&owners[head->owner].bytes, size);
    atomic_fetch_add(&owners[head->owner].blocks, 1);
    return head + 1;
}

// Returns the head of a block, or NULL for one that is not counted.
static struct head *head_of(void *block) {
    struct head *head = (struct head *)block - 1;
    return block && head->mark == MARK ? head : NULL;
}

void *malloc(size_t size) { return allocate(size, __builtin_return_address(0)); }

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *block = allocate(bytes, __builtin_return_address(0));
    return block ? memset(block, 0, bytes) : NULL;
}

void free(void *block) {
    struct head *head = head_of(block);
    if (!head) {
        __libc_free(block);
        return;
    }
    atomic_fetch_sub(&owners[head->owner].bytes, head->size);
    atomic_fetch_sub(&owners[head->owner].blocks, 1);
    head->mark = 0;
    __libc_free(head);
}

void *realloc(void *block, size_t size) {
    struct head *head = head_of(block);
    if (block && !head)
        return __libc_realloc(block, size);
    void *moved = allocate(size, __builtin_return_address(0));
    if (moved && head) {
        memcpy(moved, block, head->size < size ? head->size : size);
        free(block);
    }
    return moved;
}

size_t malloc_usable_size(void *block) {
    struct head *head = head_of(block);
    return head ? head->size : 0;
}

static void *report(void *none) {
    for (int seconds = SECONDS;; seconds += SECONDS) {
        sleep(SECONDS);
        char line[LINE];
        int at = snprintf(line, LINE, "after %d s:", seconds);
        for (int owner = 0; owner < atomic_load(&owner_count) && at < LINE - 256; owner++) {
            long long bytes = atomic_load(&owners[owner].bytes);
            if (llabs(bytes) > LEAST_SHOWN)
                at += snprintf(line + at, LINE - at, " %s %lld B in %lld blocks,", owners[owner].name, bytes,
                               (long long)atomic_load(&owners[owner].blocks));
        }
        struct mallinfo2 heap = mallinfo2();
        at += snprintf(line + at, LINE - at, " heap %zu B, of which %zu free\n", heap.arena, heap.fordblks);
        (void)!write(STDERR_FILENO, line, at);
    }
    return none;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, report, NULL);
}
