// A worker thread that launches kernels, as libraries have one. The driver is that which the program has loaded.

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

typedef int launch_kernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                          void **extra);

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *context;
    launch_kernel *launch;
    // The job: this many launches of a kernel that runs for a time. None if `launches` is 0.
    void *function, *stream;
    unsigned long long ns;
    unsigned launches, threads;
    int is_paused, is_over;
};

static void *run(void *argument) {
    struct worker *worker = argument;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*set_context)(void *) = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
    worker->launch = (launch_kernel *)dlsym(driver, "cuLaunchKernel");
    set_context(worker->context);
    pthread_mutex_lock(&worker->lock);
    while (!worker->is_over) {
        if (!worker->launches || worker->is_paused) {
            pthread_cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        for (; worker->launches; worker->launches--) {
            void *arguments[] = {&worker->ns};
            worker->launch(worker->function, 1, 1, 1, worker->threads, 1, 1, 0, worker->stream, arguments, NULL);
        }
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

struct worker *worker_start(void *context) {
    struct worker *worker = calloc(1, sizeof *worker);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    worker->context = context;
    pthread_create(&worker->thread, NULL, run, worker);
    return worker;
}

// Hands over a job, and does not wait for it.
void worker_submit(struct worker *worker, void *function, void *stream, unsigned long long ns, unsigned launches,
                   unsigned threads) {
    pthread_mutex_lock(&worker->lock);
    worker->function = function, worker->stream = stream, worker->ns = ns;
    worker->launches = launches, worker->threads = threads;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

// While the worker is paused, it begins no job.
void worker_pause(struct worker *worker, int is_paused) {
    pthread_mutex_lock(&worker->lock);
    worker->is_paused = is_paused;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

// Waits until all launches of the job have returned.
void worker_wait(struct worker *worker) {
    pthread_mutex_lock(&worker->lock);
    while (worker->launches) pthread_cond_wait(&worker->changed, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

void worker_stop(struct worker *worker) {
    pthread_mutex_lock(&worker->lock);
    worker->is_over = 1;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    free(worker);
}
