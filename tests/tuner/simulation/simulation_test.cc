#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tests/support/temporary_files.h"
#include "tests/tuner/support/measured_configs.h"
#include "tests/tuner/support/simulated_measurer.h"
#include "tuner/search/searcher.h"
#include "tuner/simulation/exhaustive.h"
#include "tuner/simulation/regret.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRestrictions =
    "ic_block=16 oc_block=16,32 oc_vectors=1,2,4 broadcast=0,1 ic_unroll=2,4,8 ic_pass=0 rows=1,2,7 "
    "balance_tiles=1 oc_inner=0 prefetch=0";

Target SampleCpu() {
  Target cpu;
  cpu.model = "a CPU of the tests";
  cpu.isa = Isa::kAvx512;
  cpu.cores = 2;
  return cpu;
}

ExhaustiveRequest Request() {
  ExhaustiveRequest request;
  request.session.workload = ParseWorkload(kSampleWorkload);
  request.session.cpu = SampleCpu();
  request.session.conditions.threads = 2;
  request.conv_template = &FindConvTemplate("direct");
  request.knobs = Restrict(request.conv_template->Space(request.session.workload, request.session.cpu),
                           ParseRestrictions(kRestrictions));
  return request;
}

// Made-up times; every config whose tile is one position wide fails. One sample in four is doubled.
class MadeUpMeasurer : public SimulatedMeasurer {
 public:
  TrialResult Measure(const TrialRequest& request) override {
    ++measured;
    TrialResult result;
    if (request.config.Get("width_tile") == 1) {
      result.status = TrialStatus::kRunCrash;
      return result;
    }
    const double seconds = MadeUpSeconds(request.config);
    result.sample_seconds = {seconds, measured % 4 == 0 ? 2 * seconds : seconds, seconds};
    result.seconds = seconds;
    return result;
  }
  int measured = 0;
};

MeasuredSpace Sample() {
  MadeUpMeasurer measurer;
  return MeasureExhaustively(Request(), measurer, {});
}

TEST(MeasureExhaustively, KnowsEveryValidConfig) {
  const MeasuredSpace measured = Sample();
  const ExhaustiveRequest request = Request();
  const ConfigSpace whole = request.conv_template->Space(request.session.workload, request.session.cpu);
  const ConfigSpace space = SpaceOf(measured);
  size_t valid = 0;
  for (uint64_t index = 0; index < space.size(); ++index) {
    const Config config = space.At(index);
    EXPECT_EQ(space.IsValid(index), whole.WhyInvalid(config).empty());
    if (!space.IsValid(index)) continue;
    ++valid;
    const std::optional<double> seconds = measured.seconds.at(index);
    EXPECT_EQ(seconds.has_value(), config.Get("width_tile") != 1);
    if (seconds) {
      EXPECT_DOUBLE_EQ(*seconds, MadeUpSeconds(config));
    }
  }
  EXPECT_EQ(valid, measured.seconds.size());
  EXPECT_GT(valid, 100u);
}

TEST(MeasureExhaustively, StopsWhenAsked) {
  MadeUpMeasurer measurer;
  try {
    MeasureExhaustively(Request(), measurer, {.should_stop = [&] { return measurer.measured == 10; }});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  }
}

TEST(MeasureExhaustively, GoesOnWithWhatWasMeasured) {
  MadeUpMeasurer whole;
  const MeasuredSpace at_once = MeasureExhaustively(Request(), whole, {});
  ExhaustiveRequest request = Request();
  for (const int stop : {100, whole.measured - 5}) {  // among all, and among those that are measured again
    MadeUpMeasurer first;
    first.capacity = 3;
    const ExhaustiveSinks sinks = {
        .on_record = [&](const Record& record) { request.known.push_back(record); },
        .should_stop = [&] { return static_cast<int>(request.known.size()) >= stop; }};
    EXPECT_THROW(MeasureExhaustively(request, first, sinks), Error);
  }
  for (const Record& record : request.known) EXPECT_EQ(WhyForeign(request, record), "");
  MadeUpMeasurer rest;
  const MeasuredSpace measured = MeasureExhaustively(request, rest, {});
  EXPECT_LE(static_cast<int>(request.known.size()) + rest.measured, whole.measured);
  EXPECT_LE(rest.measured, 5);
  EXPECT_EQ(measured.seconds, at_once.seconds);
}

TEST(MeasureExhaustively, KnowsTrialsOfAnotherSpace) {
  ExhaustiveRequest request = Request();
  MadeUpMeasurer measurer;
  std::optional<Record> record;
  MeasureExhaustively(request, measurer, {.on_record = [&](const Record& one) { record = one; }});
  const auto why = [&](const auto& change) {
    Record other = *record;
    change(other);
    return WhyForeign(request, other);
  };
  EXPECT_THAT(why([](Record& other) { other.conditions.cold_weights = true; }), HasSubstr("cold or warm"));
  EXPECT_THAT(why([](Record& other) { other.template_name = "winograd"; }), HasSubstr("template winograd"));
  EXPECT_THAT(why([](Record& other) { other.target.model = "another"; }), HasSubstr("another machine"));
  EXPECT_THAT(why([](Record& other) { other.workload = ParseWorkload("ic8ih8oc8kh1"); }),
              HasSubstr("of mb1ic8ih8oc8"));
  request.knobs = Restrict(ConfigSpace(request.knobs, nullptr),
                           {{"ic_unroll", {record->config.Get("ic_unroll") == 4 ? 2 : 4}}});
  EXPECT_THAT(why([](Record&) {}), HasSubstr("leave out"));
}

std::string WhyNot(const std::string& restrictions) {
  try {
    const ExhaustiveRequest request = Request();
    Restrict(request.conv_template->Space(request.session.workload, request.session.cpu),
             ParseRestrictions(restrictions));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(Restrictions, NameWhatIsWrong) {
  EXPECT_EQ(WhyNot("rows=1,2"), "");
  EXPECT_EQ(WhyNot(""), "");
  EXPECT_THAT(WhyNot("rows"), HasSubstr("\"rows\" is not KNOB=VALUE"));
  EXPECT_THAT(WhyNot("rows="), HasSubstr("names no value"));
  EXPECT_THAT(WhyNot("rows=x"), HasSubstr("\"x\" in \"rows=x\" is not an integer"));
  EXPECT_THAT(WhyNot("depth=1"), HasSubstr("unknown knob \"depth\" (known: "));
  EXPECT_THAT(WhyNot("oc_block=17"), HasSubstr("knob \"oc_block\" is never 17 (its values: "));
}

TEST(MeasuredSpace, IsTheSameAfterWritingAndReading) {
  const MeasuredSpace measured = Sample();
  const TemporaryDirectory folder;
  const std::string path = folder.File("sample.space");
  WriteMeasuredSpace(measured, path);
  const MeasuredSpace read = ReadMeasuredSpace(path);
  EXPECT_EQ(read.target, measured.target);
  EXPECT_TRUE(read.workload == measured.workload);
  EXPECT_EQ(read.template_name, measured.template_name);
  EXPECT_EQ(read.conditions, measured.conditions);
  ASSERT_EQ(read.seconds.size(), measured.seconds.size());
  for (const auto& [index, seconds] : measured.seconds) {
    ASSERT_EQ(read.seconds.at(index).has_value(), seconds.has_value());
    if (seconds) {
      EXPECT_NEAR(*read.seconds.at(index), *seconds, 0.5e-8);
    }
  }
  EXPECT_EQ(RecordsOf(read).size(), read.seconds.size());
}

std::string WhyUnreadable(const std::string& text) {
  const TemporaryDirectory folder;
  const std::string path = folder.File("broken.space");
  WriteTextFile(path, text);
  try {
    ReadMeasuredSpace(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(MeasuredSpace, BadFilesAreNamedWithTheLine) {
  EXPECT_THAT(WhyUnreadable(""), HasSubstr("broken.space: not a measured space (it is empty)"));
  EXPECT_THAT(WhyUnreadable("0 1.5\n"), HasSubstr("broken.space:1: "));
  const TemporaryDirectory folder;
  const std::string path = folder.File("good.space");
  WriteMeasuredSpace(Sample(), path);
  const std::string text = ReadTextFile(path);
  const std::string header = text.substr(0, text.find('\n') + 1);
  EXPECT_EQ(WhyUnreadable(header + "0 1.5 # a remark\n\n"), "");
  EXPECT_THAT(WhyUnreadable(header + "0 1.5\n1 -2\n"), HasSubstr(":3: \"-2\" is not a time in microseconds"));
  EXPECT_THAT(WhyUnreadable(header + "one 2\n"), HasSubstr(":2: \"one 2\" is not an index and a time"));
}

TEST(MeasuredSpace, DamagedHeadersAndPointsAreRefused) {
  const TemporaryDirectory folder;
  const std::string path = folder.File("good.space");
  WriteMeasuredSpace(Sample(), path);
  const std::string text = ReadTextFile(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string damaged = text;
    const size_t at = damaged.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return WhyUnreadable(damaged.replace(at, from.size(), to));
  };
  constexpr const char* kUnroll = R"({"name":"ic_unroll","values":[2,4,8]})";
  EXPECT_EQ(with(kUnroll, kUnroll), "");
  EXPECT_THAT(with(kUnroll, R"({"name":"ic_unroll","values":[]})"),
              HasSubstr("broken.space:1: knob \"ic_unroll\" has no values"));
  EXPECT_THAT(with(kUnroll, R"({"name":"ic_unroll","values":[2,2]})"),
              HasSubstr(":1: knob \"ic_unroll\" lists 2 twice"));
  EXPECT_THAT(with(kUnroll, R"({"name":"ic_unroll","values":2})"),
              HasSubstr(":1: field \"values\" is a number"));
  EXPECT_THAT(with(kUnroll, R"({"name":"ic_unroll","values":[3]})"), HasSubstr("\"ic_unroll\" is never 3"));
  EXPECT_THAT(with(kUnroll, R"({"name":"rows","values":[1]})"),
              HasSubstr(":1: two knobs are named \"rows\""));
  EXPECT_THAT(with(kUnroll, R"({"name":"depth","values":[1]})"),
              HasSubstr(":1: knob \"ic_unroll\" of template direct is missing"));
  EXPECT_THAT(with(std::string(kUnroll) + ",", ""), HasSubstr("\"ic_unroll\" of template direct is missing"));
  EXPECT_THAT(with(kUnroll, std::string(kUnroll) + R"(,{"name":"depth","values":[1]})"),
              HasSubstr(":1: template direct has no knob \"depth\""));
  EXPECT_THAT(with("\"direct\"", "\"gone\""), HasSubstr(":1: unknown template \"gone\""));
  EXPECT_THAT(with("\"direct\"", "\"depthwise\""), HasSubstr(":1: template depthwise does not compute"));
  EXPECT_THAT(with("\"threads\":2", "\"threads\":0"), HasSubstr(":1: field \"threads\" is 0"));
  EXPECT_THAT(with("\"knobs\":[", "\"knobs\":" + std::string(300'000, '[') + "["),
              HasSubstr(":1: not a measured space"));
  const std::string header = text.substr(0, text.find('\n') + 1);
  EXPECT_THAT(WhyUnreadable(header), HasSubstr("broken.space: it has no config that worked"));
  EXPECT_THAT(WhyUnreadable(header + "0 failed\n"), HasSubstr("no config that worked"));
  EXPECT_THAT(WhyUnreadable(header + "18446744073709551615 3.0\n"),
              HasSubstr(":2: index 18446744073709551615"));
  EXPECT_THAT(WhyUnreadable(header + "0 1\n0 2\n"), HasSubstr(":3: index 0 comes twice"));
  for (const char* time : {"inf", "nan", "1e300", "0", "1e-300"})
    EXPECT_THAT(WhyUnreadable(header + "0 " + time + "\n"), HasSubstr(":2: ")) << time;
}

TEST(Replay, EndsAtTheTrueBestWhenItMayTryEverything) {
  const MeasuredSpace measured = Sample();
  ReplayOptions options;
  options.trials = static_cast<int>(measured.seconds.size()) + 100;
  for (const SearcherInfo& info : Searchers()) {
    const std::vector<double> curve = Replay(measured, info.name, options);
    EXPECT_EQ(curve.size(), measured.seconds.size()) << info.name;
    EXPECT_EQ(curve.back(), TrueBest(measured)) << info.name;
    EXPECT_TRUE(std::is_sorted(curve.rbegin(), curve.rend())) << info.name;
  }
}

TEST(Replay, DoesWithoutTheTemplatesDefault) {
  MeasuredSpace measured = Sample();
  const ConfigSpace space(measured.knobs, nullptr);
  const Config preset = FindConvTemplate("direct").Default(measured.workload, SampleCpu());
  // Every config whose value of the knob is the default's was not measured.
  std::erase_if(measured.seconds, [&](const auto& point) {
    return space.At(point.first).Get("ic_unroll") == preset.Get("ic_unroll");
  });
  ASSERT_FALSE(measured.seconds.empty());
  for (const SearcherInfo& info : Searchers())
    EXPECT_FALSE(Replay(measured, info.name, {.trials = 30}).empty());
}

TEST(Replay, IsDeterministic) {
  const MeasuredSpace measured = Sample();
  for (const SearcherInfo& info : Searchers()) {
    EXPECT_EQ(Replay(measured, info.name, {.trials = 80}), Replay(measured, info.name, {.trials = 80}))
        << info.name;
  }
}

TEST(Replay, HistoryOfAnotherTaskHelps) {
  const MeasuredSpace measured = Sample();
  auto history = std::make_shared<TrainingHistory>();
  for (const Record& record : MeasuredConfigs("ic64ih28oc64oh28kh3ph1", 400, 9)) history->Add(record);
  int cold = 0, taught = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    ReplayOptions options = {.trials = 100, .seed = seed};
    cold += TrialsUntil(Replay(measured, "xgb", options), TrueBest(measured), 0.02);
    options.history = history;
    taught += TrialsUntil(Replay(measured, "xgb", options), TrueBest(measured), 0.02);
  }
  EXPECT_LT(taught, cold);
}

TEST(Regret, CountsTrials) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> curve = {inf, 2.0, 1.04, 1.0};
  EXPECT_EQ(TrialsUntil(curve, 1.0, 0.05), 3);
  EXPECT_EQ(TrialsUntil(curve, 1.0, 0.02), 4);
  EXPECT_EQ(TrialsUntil(curve, 0.5, 0.02), 5) << "never";
  EXPECT_DOUBLE_EQ(RegretAfter(curve, 1.0, 2), 1.0);
  EXPECT_DOUBLE_EQ(RegretAfter(curve, 1.0, 100), 0.0);
  EXPECT_EQ(RegretAfter({}, 1.0, 10), inf) << "nothing was tried";
}

}  // namespace
}  // namespace tilesmith
