#include <exception>
#include <optional>
#include <string>

#include "layouts/base/error.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"

struct tilesmith_model {
  tilesmith::Model model;
};

struct tilesmith_session {
  tilesmith::Session session;
  size_t inputs = 0, outputs = 0;
};

namespace {

std::string& LastError() {
  static thread_local std::string message;
  return message;
}

// Runs body; exceptions become a status.
template <typename Body>
int Guard(const Body& body) {
  try {
    body();
    return 0;
  } catch (const tilesmith::Error& error) {
    LastError() = error.what();
    return int(error.code());
  } catch (const std::exception& error) {
    LastError() = error.what();
    return int(tilesmith::ErrorCode::kInternal);
  }
}

void RequirePointer(const void* pointer, const char* name) {
  if (pointer == nullptr)
    throw tilesmith::Error(tilesmith::ErrorCode::kUsage, std::string(name) + " is a null pointer");
}

tilesmith_tensor_info InfoOf(const tilesmith::TensorInfo& tensor) {
  return {tensor.name.c_str(), tensor.shape.data(), tensor.shape.size(), tensor.layout.c_str(),
          tensor.floats};
}

tilesmith::LoadOptions OptionsOf(const tilesmith_load_options* given) {
  tilesmith::LoadOptions options;
  if (given == nullptr) return options;
  if (given->plan != nullptr) options.plan = given->plan;
  options.threads = given->threads;
  options.batch = given->batch;
  for (size_t i = 0; i < given->input_shape_count; ++i)
    options.input_shapes.emplace_back(given->input_shapes[i]);
  return options;
}

}  // namespace

const char* tilesmith_last_error(void) { return LastError().c_str(); }

int tilesmith_load(const char* model_name, const tilesmith_load_options* options, tilesmith_model** model) {
  return Guard([&] {
    RequirePointer(model, "model");
    *model = nullptr;
    RequirePointer(model_name, "model_name");
    *model = new tilesmith_model{tilesmith::Model::Load(model_name, OptionsOf(options))};
  });
}

void tilesmith_free_model(tilesmith_model* model) { delete model; }

int tilesmith_threads(const tilesmith_model* model) { return model->model.threads(); }
size_t tilesmith_input_count(const tilesmith_model* model) { return model->model.inputs().size(); }
size_t tilesmith_output_count(const tilesmith_model* model) { return model->model.outputs().size(); }
tilesmith_tensor_info tilesmith_input(const tilesmith_model* model, size_t index) {
  return InfoOf(model->model.inputs().at(index));
}
tilesmith_tensor_info tilesmith_output(const tilesmith_model* model, size_t index) {
  return InfoOf(model->model.outputs().at(index));
}

int tilesmith_new_session(const tilesmith_model* model, const int* cores, size_t core_count,
                          tilesmith_session** session) {
  return Guard([&] {
    RequirePointer(session, "session");
    *session = nullptr;
    RequirePointer(model, "model");
    tilesmith::SessionOptions options;
    if (cores != nullptr) options.cores.assign(cores, cores + core_count);
    *session = new tilesmith_session{model->model.NewSession(options), model->model.inputs().size(),
                                     model->model.outputs().size()};
  });
}

void tilesmith_free_session(tilesmith_session* session) { delete session; }

int tilesmith_run(tilesmith_session* session, const float* const* inputs, float* const* outputs) {
  return Guard([&] {
    RequirePointer(session, "session");
    RequirePointer(inputs, "inputs");
    RequirePointer(outputs, "outputs");
    session->session.Run(std::span(inputs, session->inputs), std::span(outputs, session->outputs));
  });
}
