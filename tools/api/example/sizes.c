/* sizes MODEL N...: runs a model of images 1x3xNxN in every size given, and prints the shapes of its outputs. */
#include <stdio.h>
#include <stdlib.h>
#include <tilesmith/tilesmith_c.h>

static void print_outputs(const tilesmith_session* session, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const tilesmith_tensor output = tilesmith_result(session, i);
    for (size_t axis = 0; axis < output.rank; ++axis)
      printf("%s%lld", axis == 0 ? "" : "x", (long long)output.shape[axis]);
    printf(" of %s\n", output.type);
  }
}

static int run_size(tilesmith_session* session, size_t outputs, int64_t size) {
  const int64_t shape[] = {1, 3, size, size};
  float* image = calloc((size_t)(3 * size * size), sizeof(float));
  const tilesmith_tensor input = {.data = image, .shape = shape, .rank = 4};
  const int status = tilesmith_run_inputs(session, &input);
  if (status == 0) print_outputs(session, outputs);
  free(image);
  return status;
}

static int run_sizes(const char* name, int count, char** sizes) {
  const tilesmith_load_options options = {.sizes = 4};
  tilesmith_model* model = NULL;
  tilesmith_session* session = NULL;
  int status = tilesmith_load(name, &options, &model);
  if (status == 0) status = tilesmith_new_session(model, NULL, 0, &session);
  for (int i = 0; status == 0 && i < count; ++i) {
    const long size = strtol(sizes[i], NULL, 10);
    if (size < 1 || size > 4096) {
      fprintf(stderr, "%s is no size from 1 to 4096\n", sizes[i]);
      status = 2;
    } else {
      status = run_size(session, tilesmith_output_count(model), size);
    }
  }
  if (tilesmith_last_error()[0] != 0) fprintf(stderr, "%s\n", tilesmith_last_error());
  tilesmith_free_session(session);
  tilesmith_free_model(model);
  return status;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s MODEL N...\n", argv[0]);
    return 2;
  }
  return run_sizes(argv[1], argc - 2, argv + 2);
}
