#include "tools/api/c_values.h"

struct tilesmith_model {
  tilesmith::Model model;
};

struct tilesmith_session {
  tilesmith::Session session;
  size_t inputs = 0, outputs = 0;
  const std::vector<tilesmith::OutputTensor>* results = nullptr;  // of the last run, where it gave any
};

namespace tilesmith::c {

std::string& LastError() {
  static thread_local std::string message;
  return message;
}

}  // namespace tilesmith::c

namespace {

using namespace tilesmith::c;  // NOLINT: all of it

// These functions report no errors, so nothing is the answer to what is not there.
using TensorsOf = const std::vector<tilesmith::TensorInfo>& (tilesmith::Model::*)() const;

size_t CountOf(const tilesmith_model* model, TensorsOf tensors) {
  return model == nullptr ? 0 : (model->model.*tensors)().size();
}

tilesmith_tensor_info InfoOf(const tilesmith_model* model, TensorsOf tensors, size_t index) {
  if (index >= CountOf(model, tensors)) return {};
  const tilesmith::TensorInfo& tensor = (model->model.*tensors)()[index];
  return {tensor.name.c_str(), tensor.shape.data(), tensor.shape.size(), tensor.layout.c_str(),
          tensor.type.c_str(), tensor.elements,     tensor.bytes};
}

template <typename Given>
int Load(const Given* given, const tilesmith_load_options* options, tilesmith_model** model) {
  return Guard([&] {
    RequirePointer(model, "model");
    *model = nullptr;
    const auto load = SettingsOf<tilesmith::LoadOptions>(options ? *options : tilesmith_load_options{});
    *model = new tilesmith_model{tilesmith::Model::Load(ModelOf(given), load)};
  });
}

}  // namespace

const char* tilesmith_last_error(void) { return LastError().c_str(); }

int tilesmith_load(const char* model_name, const tilesmith_load_options* options, tilesmith_model** model) {
  return Load(model_name, options, model);
}
int tilesmith_load_memory(const tilesmith_memory* memory, const tilesmith_load_options* options,
                          tilesmith_model** model) {
  return Load(memory, options, model);
}

void tilesmith_free_model(tilesmith_model* model) { delete model; }

int tilesmith_threads(const tilesmith_model* model) { return model == nullptr ? 0 : model->model.threads(); }
int tilesmith_reproducible(const tilesmith_model* model) {
  return model != nullptr && model->model.reproducible() ? 1 : 0;
}
const char* tilesmith_warning(const tilesmith_model* model, size_t index) {
  return model == nullptr || index >= model->model.warnings().size() ? nullptr
                                                                     : model->model.warnings()[index].c_str();
}
size_t tilesmith_input_count(const tilesmith_model* model) {
  return CountOf(model, &tilesmith::Model::inputs);
}
size_t tilesmith_output_count(const tilesmith_model* model) {
  return CountOf(model, &tilesmith::Model::outputs);
}
tilesmith_tensor_info tilesmith_input(const tilesmith_model* model, size_t index) {
  return InfoOf(model, &tilesmith::Model::inputs, index);
}
tilesmith_tensor_info tilesmith_output(const tilesmith_model* model, size_t index) {
  return InfoOf(model, &tilesmith::Model::outputs, index);
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

int tilesmith_run(tilesmith_session* session, const void* const* inputs, void* const* outputs) {
  return Guard([&] {
    RequirePointer(session, "session");
    RequirePointer(inputs, "inputs");
    RequirePointer(outputs, "outputs");
    session->results = nullptr;
    session->session.Run(std::span(inputs, session->inputs), std::span(outputs, session->outputs));
  });
}

int tilesmith_run_inputs(tilesmith_session* session, const tilesmith_tensor* inputs) {
  return Guard([&] {
    RequirePointer(session, "session");
    RequirePointer(inputs, "inputs");
    session->results = nullptr;
    std::vector<tilesmith::InputTensor> tensors;
    for (size_t i = 0; i < session->inputs; ++i) {
      const tilesmith_tensor& input = inputs[i];
      tensors.push_back({input.data, {input.shape, input.shape == nullptr ? 0 : input.rank}});
    }
    session->results = &session->session.Run(tensors);
  });
}

tilesmith_tensor tilesmith_result(const tilesmith_session* session, size_t index) {
  if (session == nullptr || session->results == nullptr || index >= session->results->size()) return {};
  const tilesmith::OutputTensor& output = (*session->results)[index];
  return {output.data,         output.shape.data(), output.shape.size(), output.layout.c_str(),
          output.type.c_str(), output.elements,     output.bytes};
}
