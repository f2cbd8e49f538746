/* A program of an object that `tilesmith compile` wrote, and of nothing else of tilesmith's but
 * libtilesmith_kernels.a: no files, no heap. Of an object for several threads, the program has to bring them.
 */
#include <stdio.h>

#include "squeezenet.h"

static _Alignas(squeezenet_ALIGNMENT) unsigned char scratch[squeezenet_SCRATCH_BYTES];
static _Alignas(squeezenet_ALIGNMENT) float image[squeezenet_INPUT_0_BYTES / sizeof(float)];
static _Alignas(squeezenet_ALIGNMENT) float scores[squeezenet_OUTPUT_0_BYTES / sizeof(float)];

int main(void) {
  const void* inputs[squeezenet_INPUTS] = {image};
  void* outputs[squeezenet_OUTPUTS] = {scores};
  const size_t count = sizeof(scores) / sizeof(scores[0]);
  size_t largest = 0;
  for (size_t i = 0; i < sizeof(image) / sizeof(image[0]); ++i) image[i] = 0.5f;
  int status = squeezenet_init(scratch);
  if (status == TILESMITH_OK) status = squeezenet_run(inputs, outputs, scratch);
  if (status != TILESMITH_OK) {
    fprintf(stderr, "status %d\n", status);
    return 1;
  }
  for (size_t i = 1; i < count; ++i)
    if (scores[i] > scores[largest]) largest = i;
  printf("%s: the largest of %zu is number %zu, %g\n", squeezenet_OUTPUT_0_NAME, count, largest,
         scores[largest]);
  return 0;
}
