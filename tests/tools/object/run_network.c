/* run_network INPUT OUTPUT: runs the object `network` of one input and output, by files of their bytes, on
 * scratch of no particular contents; and once more on other scratch, when the first is gone. Whoever
 * allocates meanwhile ends the program. */
#define _POSIX_C_SOURCE 200112L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"

#define BYTES_ALIGNED(name, bytes) static _Alignas(network_ALIGNMENT) unsigned char name[bytes]
BYTES_ALIGNED(scratch, network_SCRATCH_BYTES);
BYTES_ALIGNED(other_scratch, network_SCRATCH_BYTES + 64);
BYTES_ALIGNED(input, network_INPUT_0_BYTES);
BYTES_ALIGNED(output, network_OUTPUT_0_BYTES);
BYTES_ALIGNED(again, network_OUTPUT_0_BYTES);

static int forbidden = 0;
static _Alignas(64) unsigned char heap[1 << 20];
static size_t heap_used = 0;

static void* take(size_t bytes) {
  void* const block = heap + heap_used;
  if (forbidden) {
    static const char text[] = "an allocation\n";
    fwrite(text, 1, sizeof(text) - 1, stderr);
    abort();
  }
  heap_used += (bytes + 63) / 64 * 64;
  return heap_used <= sizeof(heap) ? block : NULL;
}

/* libc's own calls, too, come here. */
void* malloc(size_t bytes) { return take(bytes); }
void* calloc(size_t count, size_t bytes) { return take(count * bytes); }
void* realloc(void* block, size_t bytes) { return block == NULL ? take(bytes) : NULL; }
void* aligned_alloc(size_t alignment, size_t bytes) { return alignment <= 64 ? take(bytes) : NULL; }
void free(void* block) { (void)block; }

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

#if network_THREADS > 1
/* Threads that wait for a body. */
static pthread_barrier_t begin, end;
static void (*body)(void*, int) = NULL;
static void* context = NULL;
static int regions = 0;

static void* work(void* thread) {
  for (;;) {
    pthread_barrier_wait(&begin);
    body(context, (int)(intptr_t)thread);
    pthread_barrier_wait(&end);
  }
  return NULL;
}

static void parallel(void* pool, int threads, void (*call)(void*, int), void* with) {
  expect(pool == &regions && threads == network_THREADS, "another pool");
  ++regions;
  body = call;
  context = with;
  pthread_barrier_wait(&begin);
  body(context, 0);
  pthread_barrier_wait(&end);
}

static tilesmith_pool pool = {&regions, parallel};

static void start_threads(void) {
  pthread_barrier_init(&begin, NULL, network_THREADS);
  pthread_barrier_init(&end, NULL, network_THREADS);
  for (intptr_t thread = 1; thread < network_THREADS; ++thread) {
    pthread_t handle;
    expect(pthread_create(&handle, NULL, work, (void*)thread) == 0, "no thread");
  }
}
#define RUN(in, out, memory) network_run(in, out, memory, &pool)
#else
static void start_threads(void) {}
#define RUN(in, out, memory) network_run(in, out, memory)
#endif

static void refusals(const void** inputs, void** outputs) {
  expect(RUN(inputs, outputs, scratch) == TILESMITH_NOT_PREPARED, "not prepared");
  expect(network_init(scratch + 4) == TILESMITH_ARGUMENT, "scratch that is not aligned");
  expect(network_init(scratch) == TILESMITH_OK, "init");
  inputs[0] = input + 4;
  expect(RUN(inputs, outputs, scratch) == TILESMITH_ARGUMENT, "an input that is not aligned");
  inputs[0] = input;
#if network_THREADS > 1
  expect(network_run(inputs, outputs, scratch, NULL) == TILESMITH_ARGUMENT, "no pool");
#endif
}

int main(int argc, char** argv) {
  const void* inputs[network_INPUTS] = {input};
  void* outputs[network_OUTPUTS] = {output};
  FILE* file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  expect(file != NULL && fread(input, 1, sizeof(input), file) == sizeof(input), "no input");
  fclose(file);
  start_threads();
  memset(scratch, 0xff, sizeof(scratch));
  memset(other_scratch, 0xff, sizeof(other_scratch));
  forbidden = 1;
  refusals(inputs, outputs);
  for (int run = 0; run < 3; ++run) expect(RUN(inputs, outputs, scratch) == TILESMITH_OK, "run");
  memset(scratch, 0xff, sizeof(scratch));
  outputs[0] = again;
  expect(network_init(other_scratch) == TILESMITH_OK, "init of other scratch");
  expect(RUN(inputs, outputs, other_scratch) == TILESMITH_OK, "run on other scratch");
  forbidden = 0;
  for (int i = 0; i < 64; ++i)
    expect(other_scratch[network_SCRATCH_BYTES + i] == 0xff, "writes behind scratch");
  expect(memcmp(output, again, sizeof(output)) == 0, "other outputs on other scratch");
#if network_THREADS > 1
  expect(regions > 0, "no region on the pool");
#endif
  file = fopen(argv[2], "wb");
  expect(file != NULL && fwrite(output, 1, sizeof(output), file) == sizeof(output), "no output");
  return fclose(file);
}
