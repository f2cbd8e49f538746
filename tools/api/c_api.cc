#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "layouts/base/error.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"

struct tilesmith_model {
  tilesmith::Model model;
};

struct tilesmith_session {
  tilesmith::Session session;
  size_t inputs = 0, outputs = 0;
  const std::vector<tilesmith::OutputTensor>* results = nullptr;  // of the last run, where it gave any
};

struct tilesmith_stop {
  std::atomic<bool> flag = false;
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
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    LastError() = "out of memory";
    return static_cast<int>(tilesmith::ErrorCode::kEnvironment);
  } catch (const std::exception& error) {
    LastError() = error.what();
    return static_cast<int>(tilesmith::ErrorCode::kInternal);
  }
}

template <typename T>
void RequirePointer(const T* pointer, const char* name) {
  if (pointer == nullptr)
    throw tilesmith::Error(tilesmith::ErrorCode::kUsage, std::string(name) + " is a null pointer");
}

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

std::vector<std::string> TextsOf(const char* name, const char* const* given, size_t count) {
  if (count > 0) RequirePointer(given, name);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    RequirePointer(given[i], name);
    texts.emplace_back(given[i]);
  }
  return texts;
}

template <typename Given, typename Options>
void TakeTarget(const Given& given, Options& options) {
  if (given.target != nullptr) options.target = given.target;
  if (given.precision != nullptr) options.precision = given.precision;
}

tilesmith::LoadOptions OptionsOf(const tilesmith_load_options* given) {
  tilesmith::LoadOptions options;
  if (given == nullptr) return options;
  if (given->plan != nullptr) options.plan = given->plan;
  options.threads = given->threads;
  options.batch = given->batch;
  options.max_elements = given->max_elements;
  options.max_memory = given->max_memory;
  options.sizes = given->sizes;
  options.strict = given->strict != 0;
  if (given->wait != nullptr) options.wait = given->wait;
  TakeTarget(*given, options);
  options.input_shapes = TextsOf("input_shapes", given->input_shapes, given->input_shape_count);
  return options;
}

// What those of Tune, Optimize and GraphTune have in common.
template <typename Settings>
void TakeChoosing(const tilesmith_tune_settings& given, Settings& settings) {
  TakeTarget(given, settings);
  settings.max_output_error = given.max_output_error;
  settings.max_error = given.max_error;
  settings.forbid = TextsOf("forbid", given.forbid, given.forbid_count);
  if (given.input_layout != nullptr) settings.input_layout = given.input_layout;
  if (given.output_layout != nullptr) settings.output_layout = given.output_layout;
  settings.max_weights = given.max_weights;
  settings.max_elements = given.max_elements;
  settings.max_memory = given.max_memory;
  if (given.wait != nullptr) settings.wait = given.wait;
}

// What all settings have in common.
template <typename Settings, typename Given>
Settings SettingsOf(const Given& given) {
  Settings settings;
  if constexpr (requires { settings.rounds, given.rounds; })
    if (given.rounds != 0) settings.rounds = std::max(given.rounds, 0);
  settings.threads = given.threads;
  settings.batch = given.batch;
  settings.input_shapes = TextsOf("input_shapes", given.input_shapes, given.input_shape_count);
  if (given.on_progress != nullptr) {
    settings.on_progress = [tell = given.on_progress, user_data = given.user_data](const std::string& stage) {
      tell(stage.c_str(), user_data);
    };
  }
  if (given.stop != nullptr) settings.stop = &given.stop->flag;
  settings.calibrate = TextsOf("calibrate", given.calibrate, given.calibrate_count);
  if constexpr (requires { given.target; }) TakeChoosing(given, settings);
  return settings;
}

// What those of Tune and Optimize have besides.
template <typename Settings>
void TakeMeasuring(const tilesmith_tune_settings& given, Settings& settings) {
  if (given.log != nullptr) settings.log = given.log;
  if (given.seconds != 0) settings.seconds = given.seconds;
  settings.database = given.no_database == 0;
  if (given.program != nullptr) settings.program = given.program;
}

// Models as they are given: by name, or in memory.
std::string ModelOf(const char* name) {
  RequirePointer(name, "model_name");
  return name;
}

tilesmith::ModelMemory ModelOf(const tilesmith_memory* memory) {
  RequirePointer(memory, "memory");
  const auto bytes_of = [](const void* data, size_t bytes, const char* name) {
    if (bytes > 0) RequirePointer(data, name);
    return std::span(static_cast<const std::byte*>(data), bytes);
  };
  tilesmith::ModelMemory model;
  model.bytes = bytes_of(memory->data, memory->bytes, "data");
  if (memory->name != nullptr) model.name = memory->name;
  if (memory->part_count > 0) RequirePointer(memory->parts, "parts");
  for (size_t i = 0; i < memory->part_count; ++i) {
    const tilesmith_part& part = memory->parts[i];
    RequirePointer(part.location, "location");
    model.parts[part.location] = bytes_of(part.data, part.bytes, "data");
  }
  return model;
}

template <typename Given>
int Load(const Given* given, const tilesmith_load_options* options, tilesmith_model** model) {
  return Guard([&] {
    RequirePointer(model, "model");
    *model = nullptr;
    *model = new tilesmith_model{tilesmith::Model::Load(ModelOf(given), OptionsOf(options))};
  });
}

template <typename Given>
int Tune(const Given* model, const char* plan, const tilesmith_tune_settings* settings) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(plan, "plan");
    const tilesmith_tune_settings given = settings != nullptr ? *settings : tilesmith_tune_settings{};
    auto options = SettingsOf<tilesmith::TuneSettings>(given);
    TakeMeasuring(given, options);
    if (given.graph_seconds != 0) options.graph_seconds = given.graph_seconds;
    tilesmith::Tune(of, plan, options);
  });
}

template <typename Given>
int Optimize(const Given* model, const char* plan, const tilesmith_tune_settings* settings) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(plan, "plan");
    const tilesmith_tune_settings given = settings != nullptr ? *settings : tilesmith_tune_settings{};
    auto options = SettingsOf<tilesmith::OptimizeSettings>(given);
    TakeMeasuring(given, options);
    tilesmith::Optimize(of, plan, options);
  });
}

template <typename Given>
int GraphTune(const Given* model, const char* log, const char* plan,
              const tilesmith_tune_settings* settings) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(plan, "plan");
    const tilesmith_tune_settings given = settings != nullptr ? *settings : tilesmith_tune_settings{};
    auto options = SettingsOf<tilesmith::GraphTuneSettings>(given);
    if (given.graph_seconds != 0) options.seconds = given.graph_seconds;
    tilesmith::GraphTune(of, log != nullptr ? log : "", plan, options);
  });
}

template <typename Given>
int Quantize(const Given* model, const char* output, const tilesmith_quantize_settings* settings) {
  return Guard([&] {
    const auto of = ModelOf(model);
    RequirePointer(output, "output");
    const tilesmith_quantize_settings given = settings != nullptr ? *settings : tilesmith_quantize_settings{};
    auto options = SettingsOf<tilesmith::QuantizeSettings>(given);
    options.samples = given.samples;
    if (given.method != nullptr) options.method = given.method;
    if (given.percentile != 0) options.percentile = given.percentile;
    if (given.activations != nullptr) options.activations = given.activations;
    options.reduce_range = given.reduce_range != 0;
    options.keep = TextsOf("keep", given.keep, given.keep_count);
    options.keep_first = given.keep_first != 0;
    options.keep_last = given.keep_last != 0;
    options.op_types = TextsOf("op_types", given.op_types, given.op_type_count);
    options.external_data = given.external_data != 0;
    options.check = given.no_check == 0;
    tilesmith::Quantize(of, output, options);
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

tilesmith_stop* tilesmith_new_stop(void) { return new (std::nothrow) tilesmith_stop; }
void tilesmith_cancel(tilesmith_stop* stop) {
  if (stop != nullptr) stop->flag = true;
}
void tilesmith_free_stop(tilesmith_stop* stop) { delete stop; }

int tilesmith_tune(const char* model_name, const char* plan, const tilesmith_tune_settings* settings) {
  return Tune(model_name, plan, settings);
}
int tilesmith_tune_memory(const tilesmith_memory* memory, const char* plan,
                          const tilesmith_tune_settings* settings) {
  return Tune(memory, plan, settings);
}

int tilesmith_optimize(const char* model_name, const char* plan, const tilesmith_tune_settings* settings) {
  return Optimize(model_name, plan, settings);
}
int tilesmith_optimize_memory(const tilesmith_memory* memory, const char* plan,
                              const tilesmith_tune_settings* settings) {
  return Optimize(memory, plan, settings);
}

int tilesmith_graph_tune(const char* model_name, const char* log, const char* plan,
                         const tilesmith_tune_settings* settings) {
  return GraphTune(model_name, log, plan, settings);
}
int tilesmith_graph_tune_memory(const tilesmith_memory* memory, const char* log, const char* plan,
                                const tilesmith_tune_settings* settings) {
  return GraphTune(memory, log, plan, settings);
}

int tilesmith_quantize(const char* model_name, const char* output,
                       const tilesmith_quantize_settings* settings) {
  return Quantize(model_name, output, settings);
}
int tilesmith_quantize_memory(const tilesmith_memory* memory, const char* output,
                              const tilesmith_quantize_settings* settings) {
  return Quantize(memory, output, settings);
}
