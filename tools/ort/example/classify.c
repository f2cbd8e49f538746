/* classify LIBRARY MODEL: runs a model of one float input in ONNX Runtime, with tilesmith computing what it can.
   LIBRARY is libtilesmith_ort.so. ONNX Runtime 1.23 or later. */
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtApi* api;

static void check(OrtStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", api->GetErrorMessage(status));
  exit(1);
}

static void use_tilesmith(OrtEnv* env, const char* library, OrtSessionOptions* options) {
  const OrtEpDevice* const* devices;
  const OrtEpDevice* ours = NULL;
  size_t count;
  check(api->RegisterExecutionProviderLibrary(env, "tilesmith", library));
  check(api->GetEpDevices(env, &devices, &count));
  for (size_t i = 0; i < count; ++i)
    if (strcmp(api->EpDevice_EpName(devices[i]), "TilesmithExecutionProvider") == 0) ours = devices[i];
  if (ours == NULL) {
    fprintf(stderr, "%s offers no execution provider\n", library);
    exit(1);
  }
  const char* names[] = {"threads"}; /* or "plan", with what `tilesmith graph-tune` wrote */
  const char* values[] = {"0"};
  /* Idle threads of ONNX Runtime would spin on the cores that tilesmith computes on. */
  check(api->AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0"));
  check(api->SessionOptionsAppendExecutionProvider_V2(options, env, &ours, 1, names, values, 1));
}

/* A float tensor of the first input's shape. */
static OrtValue* new_input(OrtSession* session, OrtAllocator* allocator, float value) {
  OrtTypeInfo* type;
  const OrtTensorTypeAndShapeInfo* info;
  OrtValue* tensor;
  size_t rank, elements;
  float* data;
  int64_t shape[8];
  check(api->SessionGetInputTypeInfo(session, 0, &type));
  check(api->CastTypeInfoToTensorInfo(type, &info));
  check(api->GetDimensionsCount(info, &rank));
  if (rank > 8) rank = 8;
  check(api->GetDimensions(info, shape, rank));
  check(api->CreateTensorAsOrtValue(allocator, shape, rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &tensor));
  check(api->GetTensorShapeElementCount(info, &elements));
  check(api->GetTensorMutableData(tensor, (void**)&data));
  for (size_t i = 0; i < elements; ++i) data[i] = value;
  api->ReleaseTypeInfo(type);
  return tensor;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s LIBRARY MODEL\n", argv[0]);
    return 2;
  }
  api = OrtGetApiBase()->GetApi(23);
  if (api == NULL) {
    fprintf(stderr, "ONNX Runtime %s is too old, 1.23 is needed\n", OrtGetApiBase()->GetVersionString());
    return 1;
  }
  OrtEnv* env;
  OrtSessionOptions* options;
  OrtSession* session;
  OrtAllocator* allocator;
  OrtValue* output = NULL;
  char *input_name, *output_name;
  OrtTensorTypeAndShapeInfo* info;
  size_t elements, largest = 0;
  float* scores;
  check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "classify", &env));
  check(api->CreateSessionOptions(&options));
  use_tilesmith(env, argv[1], options);
  check(api->CreateSession(env, argv[2], options, &session));
  check(api->GetAllocatorWithDefaultOptions(&allocator));
  check(api->SessionGetInputName(session, 0, allocator, &input_name));
  check(api->SessionGetOutputName(session, 0, allocator, &output_name));
  OrtValue* input = new_input(session, allocator, 0.5f);
  check(api->Run(session, NULL, (const char* const*)&input_name, (const OrtValue* const*)&input, 1,
                 (const char* const*)&output_name, 1, &output));
  check(api->GetTensorTypeAndShape(output, &info));
  check(api->GetTensorShapeElementCount(info, &elements));
  check(api->GetTensorMutableData(output, (void**)&scores));
  for (size_t i = 1; i < elements; ++i)
    if (scores[i] > scores[largest]) largest = i;
  printf("%s: the largest of %zu is number %zu, %g\n", output_name, elements, largest, scores[largest]);
  api->ReleaseTensorTypeAndShapeInfo(info);
  check(api->AllocatorFree(allocator, input_name));
  check(api->AllocatorFree(allocator, output_name));
  api->ReleaseValue(input);
  api->ReleaseValue(output);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  check(api->UnregisterExecutionProviderLibrary(env, "tilesmith"));
  api->ReleaseEnv(env);
  return 0;
}
