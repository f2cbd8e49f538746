/* tilesmith for C and for what calls C. The model is tilesmith.h's, where all is explained.
 *
 * Functions that can fail return 0, or what the command line would exit with: 2 usage, 3 bad model, 4 no
 * valid candidate, 7 environment, 130 cancelled, 1 anything else. tilesmith_last_error tells what was wrong.
 * Names and shapes live as long as their model. */
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
  const char* plan; /* file of `tilesmith optimize` or `graph-tune`, or NULL */
  int threads;
  int64_t batch;
  const char* const* input_shapes;
  size_t input_shape_count;
  int64_t max_elements;
  int64_t max_memory;    /* MiB */
  int sizes;             /* of inputs that are kept prepared; up to 1: the first only */
  const char* wait;      /* "spin", "yield" or "sleep"; NULL is "sleep" */
  const char* target;    /* "cpu", "cuda" or "cuda:N"; NULL is "cpu" */
  const char* precision; /* "f32", or of a GPU "tf32"; NULL is "f32" */
  int strict;            /* a plan for another number of threads is an error */
  int reproducible;      /* outputs are the same bits on every CPU */
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

/* A model in memory: tilesmith::ModelMemory. */
typedef struct {
  const char* location; /* as the model gives it */
  const void* data;
  size_t bytes;
} tilesmith_part;
typedef struct {
  const void* data; /* what an ONNX file holds */
  size_t bytes;
  const tilesmith_part* parts; /* what other files hold */
  size_t part_count;
  const char* name; /* in messages; NULL for a default */
} tilesmith_memory;

/* An ONNX file, a built-in network or a file of `tilesmith compile`, which is all that libtilesmith_run
 * takes. `options` may be NULL. On failure *model is NULL. */
TILESMITH_C_API int tilesmith_load(const char* model_name, const tilesmith_load_options* options,
                                   tilesmith_model** model);
/* Nothing of the memory is needed behind the call; nor is it behind those below. */
TILESMITH_C_API int tilesmith_load_memory(const tilesmith_memory* memory,
                                          const tilesmith_load_options* options, tilesmith_model** model);
/* Its sessions stay usable. NULL is allowed. */
TILESMITH_C_API void tilesmith_free_model(tilesmith_model* model);

/* Of NULL, which is no model: 0. */
TILESMITH_C_API int tilesmith_threads(const tilesmith_model* model);
TILESMITH_C_API int tilesmith_reproducible(const tilesmith_model* model);
TILESMITH_C_API size_t tilesmith_input_count(const tilesmith_model* model);
TILESMITH_C_API size_t tilesmith_output_count(const tilesmith_model* model);
/* As in tilesmith::Model::warnings; NULL where the index is not less than their number. Lives as long as the
 * model. */
TILESMITH_C_API const char* tilesmith_warning(const tilesmith_model* model, size_t index);
/* All zero, the name NULL, where the index is not less than the count. Sizes that the model leaves open are
 * -1 until the first tilesmith_run_inputs. */
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

/* What a run is given, of which type, elements and bytes are not looked at, and what it gives. */
typedef struct {
  const void* data;
  const int64_t* shape; /* of an input: NULL for the model's */
  size_t rank;
  const char* layout;
  const char* type;
  size_t elements;
  size_t bytes;
} tilesmith_tensor;

/* Outputs in memory of the session: for models whose outputs have sizes that depend on values, and for inputs
 * of other sizes than the first. As many inputs as the model has. */
TILESMITH_C_API int tilesmith_run_inputs(tilesmith_session* session, const tilesmith_tensor* inputs);
/* Output `index` of the last tilesmith_run_inputs, valid until the session's next run; all zero where there
 * is none, or where that run failed. */
TILESMITH_C_API tilesmith_tensor tilesmith_result(const tilesmith_session* session, size_t index);

/* Asks a tuning or quantising to end: from another thread, from its progress function, or from a signal
 * handler. */
typedef struct tilesmith_stop tilesmith_stop;
/* NULL when there is no memory. */
TILESMITH_C_API tilesmith_stop* tilesmith_new_stop(void);
/* The tuning or quantising that was given it returns 130 soon after, and so does one that is given it later.
 */
TILESMITH_C_API void tilesmith_cancel(tilesmith_stop* stop);
/* After the tuning has returned. NULL is allowed. */
TILESMITH_C_API void tilesmith_free_stop(tilesmith_stop* stop);

/* All zero, or NULL instead of them: the defaults of TuneSettings, OptimizeSettings and GraphTuneSettings. */
typedef struct {
  const char* log; /* NULL for the plan's path with .log.jsonl */
  double seconds;  /* of tilesmith_tune: for measuring convolutions; of tilesmith_optimize: for all of it */
  double graph_seconds; /* for choosing layouts and running plans */
  int rounds;           /* -1: none */
  int no_database;
  int threads;
  int64_t batch;
  const char* const* input_shapes;
  size_t input_shape_count;
  const char* program;                                     /* tilesmith's */
  void (*on_progress)(const char* stage, void* user_data); /* between measurements, in the calling thread */
  void* user_data;
  const tilesmith_stop* stop;
  const char* target;    /* as in tilesmith_load_options */
  const char* precision; /* as in TuneSettings, the next likewise */
  const char* const* calibrate;
  size_t calibrate_count;
  double max_output_error;
  double max_error;
  const char* const* forbid;
  size_t forbid_count;
  const char* input_layout; /* NULL is "NCHW", for the next as well */
  const char* output_layout;
  int64_t max_weights;
  int64_t max_elements; /* as in tilesmith_load_options, the next likewise */
  int64_t max_memory;
  const char* wait;
  int reproducible; /* only schedules whose outputs are the same bits on every CPU */
} tilesmith_tune_settings;

/* tilesmith::Tune: writes `plan`. 130: it was cancelled; what was measured is in the log. */
TILESMITH_C_API int tilesmith_tune(const char* model_name, const char* plan,
                                   const tilesmith_tune_settings* settings);
/* tilesmith::Optimize: writes `plan`, the best so far from the first seconds on; settings->seconds are for
 * all of it, rounds and graph_seconds do not count. 130: it was cancelled. */
TILESMITH_C_API int tilesmith_optimize(const char* model_name, const char* plan,
                                       const tilesmith_tune_settings* settings);
/* tilesmith::GraphTune: chooses by `log`, NULL for default schedules, within settings->graph_seconds;
 * seconds, log, program and no_database do not count. 130: it was cancelled; the best plan so far is in the
 * file, if there is one. */
TILESMITH_C_API int tilesmith_graph_tune(const char* model_name, const char* log, const char* plan,
                                         const tilesmith_tune_settings* settings);

/* The same for models in memory. */
TILESMITH_C_API int tilesmith_tune_memory(const tilesmith_memory* memory, const char* plan,
                                          const tilesmith_tune_settings* settings);
TILESMITH_C_API int tilesmith_optimize_memory(const tilesmith_memory* memory, const char* plan,
                                              const tilesmith_tune_settings* settings);
TILESMITH_C_API int tilesmith_graph_tune_memory(const tilesmith_memory* memory, const char* log,
                                                const char* plan, const tilesmith_tune_settings* settings);

/* All zero, or NULL instead of them: the defaults of QuantizeSettings. */
typedef struct {
  const char* const* calibrate; /* files and directories */
  size_t calibrate_count;
  int64_t samples;
  const char* method;
  double percentile;
  const char* activations;
  int reduce_range;
  const char* const* keep; /* nodes */
  size_t keep_count;
  int keep_first, keep_last;
  const char* const* op_types;
  size_t op_type_count;
  int no_check;
  int threads;
  int64_t batch;
  const char* const* input_shapes;
  size_t input_shape_count;
  void (*on_progress)(const char* stage, void* user_data);
  void* user_data;
  const tilesmith_stop* stop;
  int external_data;
} tilesmith_quantize_settings;

/* tilesmith::Quantize: writes `output`. 130: it was cancelled. */
TILESMITH_C_API int tilesmith_quantize(const char* model_name, const char* output,
                                       const tilesmith_quantize_settings* settings);
TILESMITH_C_API int tilesmith_quantize_memory(const tilesmith_memory* memory, const char* output,
                                              const tilesmith_quantize_settings* settings);

#ifdef __cplusplus
}
#endif
