// Prints which callbacks CUPTI makes for the nodes of graphs, and which node ids the records of replays have, to tell
// which function captured what a replay runs. Then times what these callbacks cost.
//
//   cc -O2 -std=gnu17 -o graph_nodes gpu/graph_nodes.c -I$CUDA/include -I$CUDA/extras/CUPTI/include
//       -L$CUDA/extras/CUPTI/lib64 -l:libcuda.so.1 -lcupti
//   ./graph_nodes
#include <cuda.h>
#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int code_ = (int)(call);                                                                                       \
        if (code_) { printf("%s: error %d (line %d)\n", #call, code_, __LINE__); }                                     \
    } while (0)

static const char *PTX = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry one() { ret; }\n"
                         ".visible .entry two() { ret; }\n.visible .entry three() { ret; }\n";
static CUstream stream;
static CUfunction one, two, three;
static CUdeviceptr memory;
static CUpti_SubscriberHandle subscriber;
static int is_quiet;
static long callbacks;

static const char *NAMES[] = {[9] = "graph created", [10] = "graph destroy", [11] = "graph cloned",
    [12] = "node create starting", [13] = "node created", [14] = "node destroy", [15] = "dependency created",
    [16] = "dependency destroy", [17] = "exec create starting", [18] = "exec created", [19] = "exec destroy",
    [20] = "node cloned", [22] = "node updated", [23] = "node set params"};

static uint64_t node_id(CUgraphNode node) {
    uint64_t id = 0;
    if (node) OK(cuptiGetGraphNodeId(node, &id));
    return id;
}

static uint32_t graph_id(CUgraph graph) {
    uint32_t id = 0;
    if (graph) OK(cuptiGetGraphId(graph, &id));
    return id;
}

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    (void)user;
    if (domain != CUPTI_CB_DOMAIN_RESOURCE) return;
    callbacks++;
    const CUpti_ResourceData *resource = data;
    const CUpti_GraphData *graph = resource->resourceDescriptor;
    if (is_quiet) {
        if (id == 13 || id == 20) { node_id(graph->node); if (id == 20) node_id(graph->originalNode); }
        return;
    }
    printf("    %-22s graph %u", NAMES[id], graph_id(graph->graph));
    if (id == 11) printf(" from graph %u", graph_id(graph->originalGraph));
    if ((id >= 12 && id <= 16) || id >= 20)
        printf(" node %llx type %d", (unsigned long long)node_id(graph->node), graph->nodeType);
    if (id == 20) printf(" from node %llx", (unsigned long long)node_id(graph->originalNode));
    if (id >= 17 && id <= 19) {
        uint32_t exec = 0;
        if (graph->graphExec && id != 17) OK(cuptiGetGraphExecId(graph->graphExec, &exec));
        printf(" exec %u", exec);
    }
    printf("\n");
}

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 20;
    *buffer = aligned_alloc(64, *size);
    *most = 0;
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t id, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)id, (void)size;
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (is_quiet) continue;
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            CUpti_ActivityKernel9 *kernel = (CUpti_ActivityKernel9 *)record;
            printf("    record %-6s node %llx graph %u correlation %u\n", kernel->name,
                (unsigned long long)kernel->graphNodeId, kernel->graphId, kernel->correlationId);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            CUpti_ActivityMemset4 *set = (CUpti_ActivityMemset4 *)record;
            printf("    record memset node %llx graph %u correlation %u\n",
                (unsigned long long)set->graphNodeId, set->graphId, set->correlationId);
        }
    }
    free(buffer);
}

static void flush(void) {
    OK(cuCtxSynchronize());
    OK(cuptiActivityFlushAll(1));
    fflush(stdout);
}

static void launch(CUfunction function) { OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL)); }

static CUgraph captured(void) {
    CUgraph graph;
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    launch(one);
    OK(cuMemsetD8Async(memory, 1, 4096, stream));
    launch(two);
    OK(cuStreamEndCapture(stream, &graph));
    return graph;
}

static CUgraphExec instantiated(CUgraph graph) {
    CUgraphExec exec;
    OK(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

static void replay(const char *what, CUgraphExec exec) {
    printf("  replay %s\n", what);
    OK(cuGraphLaunch(exec, stream));
    flush();
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * now.tv_sec + 1e-3 * now.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

static const int IDS[] = {13, 14, 20};

static void switch_nodes(int is_on) {
    for (int at = 0; at < 3; at++) OK(cuptiEnableCallback(is_on, subscriber, CUPTI_CB_DOMAIN_RESOURCE, IDS[at]));
}

// The time of capture and instantiation for each of 1,000 nodes, and of a launch of a graph of 20.
static void time_costs(const char *what) {
    enum { NODES = 1000, TIMES = 15, LAUNCHES = 200 };
    double captures[TIMES], instantiations[TIMES], launches[LAUNCHES];
    for (int at = 0; at < TIMES; at++) {
        CUgraph graph;
        double begin = now_us();
        OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        for (int node = 0; node < NODES; node++) launch(one);
        OK(cuStreamEndCapture(stream, &graph));
        double middle = now_us();
        CUgraphExec exec = instantiated(graph);
        double end = now_us();
        captures[at] = (middle - begin) / NODES, instantiations[at] = (end - middle) / NODES;
        OK(cuGraphExecDestroy(exec));
        OK(cuGraphDestroy(graph));
    }
    CUgraph graph;
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int node = 0; node < 20; node++) launch(one);
    OK(cuStreamEndCapture(stream, &graph));
    CUgraphExec exec = instantiated(graph);
    for (int at = 0; at < LAUNCHES; at++) {
        double begin = now_us();
        OK(cuGraphLaunch(exec, stream));
        launches[at] = now_us() - begin;
        OK(cuStreamSynchronize(stream));
    }
    printf("%-34s capture %6.3f us, instantiate %6.3f us a node; launch of 20 nodes %6.2f us\n", what,
        median(captures, TIMES), median(instantiations, TIMES), median(launches, LAUNCHES));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

int main(void) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    uint32_t version;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuModuleLoadData(&module, PTX));
    OK(cuModuleGetFunction(&one, module, "one"));
    OK(cuModuleGetFunction(&two, module, "two"));
    OK(cuModuleGetFunction(&three, module, "three"));
    OK(cuMemAlloc(&memory, 4096));
    OK(cuptiGetVersion(&version));
    printf("CUPTI %u\n", version);
    launch(one);
    OK(cuCtxSynchronize());
    time_costs("before CUPTI is subscribed to");

    printf("a graph captured before\n");
    CUgraph earlier = captured();
    CUgraphExec earlier_exec = instantiated(earlier);
    OK(cuptiActivityRegisterCallbacks(on_request, on_complete));
    OK(cuptiSubscribe(&subscriber, on_call, NULL));
    for (int id = 9; id <= 23; id++)
        if (NAMES[id] && id != 21) OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id));
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    replay("of the graph captured before", earlier_exec);
    CUgraphExec later = instantiated(earlier);
    replay("of the same graph instantiated after", later);

    printf("a graph\n");
    CUgraph graph = captured();
    printf("  instantiate\n");
    CUgraphExec exec = instantiated(graph);
    replay("once", exec);
    replay("twice", exec);
    printf("  instantiate again\n");
    CUgraphExec second = instantiated(graph);
    replay("of the second", second);

    printf("a clone\n");
    CUgraph clone;
    OK(cuGraphClone(&clone, graph));
    CUgraphExec of_clone = instantiated(clone);
    replay("of the clone", of_clone);

    printf("another graph, to update the first with\n");
    CUgraph other = captured();
    CUgraphExecUpdateResultInfo result;
    printf("  update\n");
    OK(cuGraphExecUpdate(exec, other, &result));
    replay("after the update", exec);

    printf("a node by hand\n");
    CUDA_KERNEL_NODE_PARAMS params = {.func = three, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
        .blockDimY = 1, .blockDimZ = 1};
    CUgraphNode node;
    OK(cuGraphAddKernelNode(&node, other, NULL, 0, &params));
    CUgraphExec by_hand = instantiated(other);
    replay("with it", by_hand);

    printf("a child graph\n");
    CUgraph outer;
    OK(cuGraphCreate(&outer, 0));
    OK(cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
    CUgraphExec of_outer = instantiated(outer);
    replay("of the outer graph", of_outer);

    printf("destroyed, and captured again\n");
    OK(cuGraphExecDestroy(second));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    graph = captured();
    exec = instantiated(graph);
    replay("of it", exec);

    is_quiet = 1;
    for (int id = 9; id <= 23; id++)
        if (NAMES[id] && id != 21) OK(cuptiEnableCallback(0, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id));
    for (int turn = 0; turn < 2; turn++) {
        switch_nodes(0);
        time_costs("recording, no callbacks of nodes");
        callbacks = 0;
        switch_nodes(1);
        time_costs("recording, with callbacks of nodes");
        printf("  %ld callbacks\n", callbacks);
        flush();
    }
    OK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    OK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET));
    for (int turn = 0; turn < 2; turn++) {
        switch_nodes(0);
        time_costs("not recording, no callbacks");
        switch_nodes(1);
        time_costs("not recording, with callbacks");
    }
    return 0;
}
