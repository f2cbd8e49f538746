/* tilesmith for C and for what calls C. The model is tilesmith.h's, where all is explained.
 *
 * Functions that can fail return 0, or what the command line would exit with: 2 usage, 3 bad model, 4 no
 * valid candidate, 7 environment, 1 anything else. tilesmith_last_error tells what was wrong. Names and
 * shapes live as long as their model. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TILESMITH_C_API __attribute__((visibility("default")))

typedef struct tilesmith_model tilesmith_model;
typedef struct tilesmith_session tilesmith_session;

/* All zero: the defaults. */
typedef struct {
  const char* plan; /* file of `tilesmith graph-tune`, or NULL */
  int threads;
  int64_t batch;
  const char* const* input_shapes;
  size_t input_shape_count;
  int64_t max_elements;
  int64_t max_memory; /* MiB */
} tilesmith_load_options;

typedef struct {
  const char* name;
  const int64_t* shape;
  size_t rank;
  const char* layout;
  const char* type;
  size_t elements;
  size_t bytes;
} tilesmith_tensor_info;

/* Of the last call in this thread that failed; "" when none did. */
TILESMITH_C_API const char* tilesmith_last_error(void);

/* `options` may be NULL. On failure *model is NULL. */
TILESMITH_C_API int tilesmith_load(const char* model_name, const tilesmith_load_options* options,
                                   tilesmith_model** model);
/* Its sessions stay usable. NULL is allowed. */
TILESMITH_C_API void tilesmith_free_model(tilesmith_model* model);

/* Of NULL, which is no model: 0. */
TILESMITH_C_API int tilesmith_threads(const tilesmith_model* model);
TILESMITH_C_API size_t tilesmith_input_count(const tilesmith_model* model);
TILESMITH_C_API size_t tilesmith_output_count(const tilesmith_model* model);
/* All zero, the name NULL, where the index is not less than the count. */
TILESMITH_C_API tilesmith_tensor_info tilesmith_input(const tilesmith_model* model, size_t index);
TILESMITH_C_API tilesmith_tensor_info tilesmith_output(const tilesmith_model* model, size_t index);

/* `cores`: one for each thread, or NULL for wherever the system lets them run. On failure *session is NULL.
 */
TILESMITH_C_API int tilesmith_new_session(const tilesmith_model* model, const int* cores, size_t core_count,
                                          tilesmith_session** session);
TILESMITH_C_API void tilesmith_free_session(tilesmith_session* session);

/* As many tensors as the model has inputs and outputs, of the types and bytes that it says. */
TILESMITH_C_API int tilesmith_run(tilesmith_session* session, const void* const* inputs,
                                  void* const* outputs);

#ifdef __cplusplus
}
#endif
