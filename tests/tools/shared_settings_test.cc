// What tunes, quantises and loads takes the same settings from C++, C and Python, and those that are options
// of the commands. All are looked up where they are declared, so that a new one cannot be forgotten.
#include <algorithm>
#include <regex>

#include "graph_tuner/planner/network_types.h"
#include "layouts/base/target.h"
#include "tests/tools/shared_options.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"

namespace tilesmith {
namespace {

using Files = TinyNetworkFiles;

// The fields of a struct in C++ or C, without C's that are functions.
Names FieldsIn(std::string body) {
  body = std::regex_replace(body, std::regex("//[^\n]*|/\\*[\\s\\S]*?\\*/|\\([^)]*\\)"), "");
  const std::regex field("(\\w+)\\s*(=[^,;]*)?[,;]");
  Names names;
  for (std::sregex_iterator at(body.begin(), body.end(), field); at != std::sregex_iterator(); ++at)
    names.insert((*at)[1]);
  return names;
}
Names FieldsOf(const std::string& settings) {
  const std::string text = ReadFile(TILESMITH_SOURCE_DIR "/tools/api/tilesmith.h");
  const size_t begin = text.find("\nstruct " + settings + " {\n");
  EXPECT_NE(begin, std::string::npos) << settings;
  return FieldsIn(text.substr(begin, text.find("\n};", begin) - begin));
}

// The arguments of a function in Python.
Names ArgumentsOf(const std::string& function) {
  const std::string text = ReadFile(TILESMITH_SOURCE_DIR "/tools/api/python/__init__.py");
  const size_t from = text.find("\ndef " + function + "(");
  EXPECT_NE(from, std::string::npos) << function;
  const std::string body = text.substr(from, text.find("\n) -> ", from) - from);
  const std::regex argument("\n    (\\w+):");
  Names names;
  for (std::sregex_iterator at(body.begin(), body.end(), argument); at != std::sregex_iterator(); ++at)
    names.insert((*at)[1]);
  return names;
}

Names Without(Names names, const Names& others) {
  std::erase_if(names, [&](const std::string& name) { return others.contains(name); });
  return names;
}
Names With(Names names, const Names& others) {
  names.insert(others.begin(), others.end());
  return names;
}

TEST(SharedSettingsTest, ThoseOfTuningAreTheSame) {
  const Names tune = FieldsOf("TuneSettings"), optimize = FieldsOf("OptimizeSettings"),
              graph_tune = FieldsOf("GraphTuneSettings");
  EXPECT_TRUE(tune.contains("max_output_error") && tune.contains("on_progress")) << "the header is misread";
  EXPECT_EQ(Without(tune, optimize), (Names{"graph_seconds", "rounds"})) << "it has one time for all of it";
  EXPECT_EQ(Without(optimize, tune), Names());
  EXPECT_EQ(Without(tune, graph_tune), (Names{"graph_seconds", "log", "database", "program"}))
      << "of measuring; the log is an argument, its seconds are what graph_seconds are of Tune";
  EXPECT_EQ(Without(graph_tune, tune), Names());
}

TEST(SharedSettingsTest, CAndPythonHaveThemAll) {
  for (const auto& [settings, c_struct] :
       {std::pair<std::string, std::string>{"TuneSettings", "tilesmith_tune_settings"},
        {"QuantizeSettings", "tilesmith_quantize_settings"},
        {"LoadOptions", "tilesmith_load_options"}}) {
    const std::string end = "} " + c_struct + ";",
                      header = ReadFile(TILESMITH_SOURCE_DIR "/tools/api/tilesmith_c.h");
    const size_t begin = header.rfind("typedef struct {", header.find(end));
    const Names of_c = FieldsIn(header.substr(begin, header.find(end) - begin));
    Names wanted = FieldsOf(settings);
    // Where all zero has to be the default.
    for (const char* name : {"database", "check"})
      if (wanted.erase(name) > 0) wanted.insert(std::string("no_") + name);
    EXPECT_EQ(Without(wanted, With(of_c, {"on_progress"})), Names()) << c_struct << " lacks them";
  }
  for (const auto& [function, settings] : {std::pair<std::string, std::string>{"tune", "TuneSettings"},
                                           {"optimize", "OptimizeSettings"},
                                           {"graph_tune", "GraphTuneSettings"},
                                           {"quantize", "QuantizeSettings"},
                                           {"load", "LoadOptions"}}) {
    const Names fields = Without(FieldsOf(settings), {"on_progress", "stop"});  // progress, Ctrl-C
    EXPECT_EQ(Without(fields, ArgumentsOf(function)), Names()) << function << " lacks them";
    EXPECT_EQ(Without(ArgumentsOf(function), fields),
              With({"model", "parts"}, function == "load"         ? Names{}
                                       : function == "graph_tune" ? Names{"plan", "progress", "log"}
                                       : function == "quantize"   ? Names{"output", "progress"}
                                                                  : Names{"plan", "progress"}));
  }
}

// Options of the commands are settings, too.
TEST(SharedSettingsTest, WhatCommandsTakeIsASetting) {
  const Names exceptions = {
      "output", "suite", "resume", "overwrite",  // arguments; a log is gone on with
      "db", "max_isa", "farm", "class",          // the user's, the environment's, the command line's
      "json", "save", "report", "nodes", "check", "onnxruntime", "dump_code",  // what people look at
      // For experiments.
      "trials", "tuner", "history", "cost_model", "seed", "conditions", "no_fusion", "no_regions",
      "no_shipped", "baseline", "no_baseline", "no_baselines", "variants", "time", "solver", "costs",
      "interpolate_costs", "any_machine", "default_schedules"};
  const std::map<std::string, std::string> renamed = {
      {"input_shape", "input_shapes"}, {"for", "seconds"}, {"time_budget", "seconds"}, {"no_db", "database"}};
  const auto declared = DeclaredOptions();
  for (const auto& [command, settings] : {std::pair<std::string, std::string>{"tune", "TuneSettings"},
                                          {"optimize", "OptimizeSettings"},
                                          {"graph-tune", "GraphTuneSettings"}}) {
    const Names fields = With(FieldsOf(settings), {"log"});  // GraphTune's argument
    for (const auto& [option, argument] : declared.at(command)) {
      std::string name = option.substr(2);
      std::ranges::replace(name, '-', '_');
      if (const auto other = renamed.find(name); other != renamed.end()) name = other->second;
      EXPECT_TRUE(exceptions.contains(name) || fields.contains(name)) << settings << " lacks " << option;
    }
  }
}

// All of them at once, in every precision that they are for.
TEST(SharedSettingsTest, AreTaken) {
  const Files& files = Files::Made();
  const TemporaryDirectory directory;
  const auto with_all = [&](auto settings, const std::string& precision) {
    settings.threads = 1;
    settings.batch = 1;
    settings.input_shapes = {Files::kShape};
    settings.precision = precision;
    if (precision == "int8" || precision == "mixed") settings.calibrate = {files.samples};
    if (precision == "mixed") settings.max_output_error = 0.5;
    settings.max_error = 1;
    settings.forbid = {"winograd"};
    settings.input_layout = settings.output_layout = "NHWC";
    settings.max_weights = 100;
    settings.max_elements = 1000000;
    settings.max_memory = 4096;
    settings.wait = "yield";
    settings.seconds = 0.3;
    if constexpr (requires { settings.rounds; }) settings.rounds = 1;
    if constexpr (requires { settings.graph_seconds; }) settings.graph_seconds = 0.3;
    if constexpr (requires { settings.program; }) {
      settings.program = TILESMITH_BINARY;
      settings.database = false;
      settings.log = directory.File(precision + ".log.jsonl");
    }
    return settings;
  };
  for (const std::string precision : {"f32", "bf16", "int8", "mixed"}) {
    if (precision == "bf16" && !HasTemplates(DetectCpu(), DataType::kBf16)) continue;
    SCOPED_TRACE(precision);
    const std::string plan = directory.File(precision + ".plan.jsonl");
    EXPECT_NO_THROW(Tune(files.model, plan, with_all(TuneSettings(), precision)));
    EXPECT_NO_THROW(GraphTune(files.model, "", plan, with_all(GraphTuneSettings(), precision)));
    EXPECT_NO_THROW(Optimize(files.model, directory.File(precision + ".optimized.jsonl"),
                             with_all(OptimizeSettings(), precision)));
    const Model model =
        Model::Load(files.model, {.plan = plan, .threads = 1, .input_shapes = {Files::kShape}});
    EXPECT_EQ(model.inputs()[0].layout, "NHWC");
    EXPECT_EQ(model.outputs()[0].layout, "NHWC");
  }
}

TEST(SharedSettingsTest, AreTakenFromC) {
  const Files& files = Files::Made();
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl"), other = directory.File("other.jsonl");
  const char *const shape = Files::kShape, *const samples = files.samples.c_str(),
                    *const forbidden = "winograd";
  tilesmith_tune_settings settings = {};
  settings.seconds = settings.graph_seconds = 0.3;
  settings.rounds = -1;
  settings.no_database = 1;
  settings.threads = 1;
  settings.input_shapes = &shape;
  settings.input_shape_count = 1;
  settings.program = TILESMITH_BINARY;
  settings.precision = "mixed";
  settings.calibrate = &samples;
  settings.calibrate_count = 1;
  settings.max_output_error = 0.5;
  settings.max_error = 1;
  settings.forbid = &forbidden;
  settings.forbid_count = 1;
  settings.input_layout = settings.output_layout = "NHWC";
  settings.max_weights = 100;
  settings.max_elements = 1000000;
  settings.max_memory = 4096;
  settings.wait = "yield";
  const char* const model = files.model.c_str();
  EXPECT_EQ(tilesmith_tune(model, plan.c_str(), &settings), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_graph_tune(model, nullptr, plan.c_str(), &settings), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_optimize(model, other.c_str(), &settings), 0) << tilesmith_last_error();
  const auto refused = [&](const char* mentions) {
    EXPECT_EQ(tilesmith_optimize(model, other.c_str(), &settings), 2);
    EXPECT_THAT(tilesmith_last_error(), testing::HasSubstr(mentions));
  };
  const char* const unknown = "no_such_template";
  settings.forbid = &unknown;
  refused("no_such_template");
  settings.forbid_count = 0;
  settings.input_layout = "NCWH";
  refused("input_layout is \"NCWH\" (known: NCHW, NHWC)");
  settings.input_layout = nullptr;
  settings.max_elements = 10;
  EXPECT_EQ(tilesmith_optimize(model, other.c_str(), &settings), 3) << "10 elements are too few";
  settings.max_elements = 0;
  settings.max_output_error = -1;
  refused("max_output_error must be at least 0, got -1");
  settings.max_output_error = 0.5;
  settings.precision = "f32";
  settings.calibrate_count = 0;
  refused("`max_output_error` is for `precision` mixed, not f32");
}

}  // namespace
}  // namespace tilesmith
