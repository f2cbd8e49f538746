/* classify_c MODEL: the same through the C interface, without the profile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilesmith/tilesmith_c.h>

static float* new_tensor(tilesmith_tensor_info info, float value) {
  float* tensor = malloc(info.bytes);
  for (size_t i = 0; tensor != NULL && i < info.elements; ++i) tensor[i] = value;
  return tensor;
}

static int is_float(tilesmith_tensor_info info) { return info.type != NULL && strcmp(info.type, "f32") == 0; }

static int classify(const char* name) {
  tilesmith_model* model = NULL;
  tilesmith_session* session = NULL;
  int status = tilesmith_load(name, NULL, &model);
  if (status == 0) status = tilesmith_new_session(model, NULL, 0, &session);
  if (status == 0 && (tilesmith_input_count(model) != 1 || tilesmith_output_count(model) != 1)) {
    fprintf(stderr, "%s has more than one input or output\n", name);
    status = 2;
  }
  if (status == 0 && !(is_float(tilesmith_input(model, 0)) && is_float(tilesmith_output(model, 0)))) {
    fprintf(stderr, "%s has an input or output that is not of f32\n", name);
    status = 2;
  }
  if (status == 0) {
    const tilesmith_tensor_info output = tilesmith_output(model, 0);
    float* image = new_tensor(tilesmith_input(model, 0), 0.5f);
    float* scores = new_tensor(output, 0);
    const void* inputs[] = {image};
    void* outputs[] = {scores};
    status = tilesmith_run(session, inputs, outputs);
    size_t largest = 0;
    for (size_t i = 1; status == 0 && i < output.elements; ++i)
      if (scores[i] > scores[largest]) largest = i;
    if (status == 0)
      printf("%s: the largest of %zu is number %zu, %g\n", output.name, output.elements, largest,
             scores[largest]);
    free(image);
    free(scores);
  }
  if (status != 0) fprintf(stderr, "%s\n", tilesmith_last_error());
  tilesmith_free_session(session);
  tilesmith_free_model(model);
  return status;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODEL\n", argv[0]);
    return 2;
  }
  return classify(argv[1]);
}
