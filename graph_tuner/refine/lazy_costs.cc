#include "graph_tuner/refine/lazy_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/error.h"

namespace tilesmith {
namespace {

constexpr double kPartOfOtherLayouts = 0.5;

std::string TransformText(const Shape& shape, const Layout& from, const Layout& to) {
  return fmt::format("transform {} {} {}", ShapeToString(shape), CanonicalLayout(shape, from).ToString(),
                     CanonicalLayout(shape, to).ToString());
}

std::string CopyText(const Shape& shape, const Layout& layout) {
  return fmt::format("copy {} {}", ShapeToString(shape), CanonicalLayout(shape, layout).ToString());
}

std::string OpText(const OpUse& use) {
  return fmt::format("op {} {}", OpUseText(use), CanonicalLayout(use.output, use.layout).ToString());
}

double BytesOf(const Shape& shape, const Layout& layout) {
  return static_cast<double>(ElementCount(shape)) * static_cast<double>(ElementBytes(layout.type()));
}

double BytesOf(const OpUse& use) {
  double bytes = BytesOf(use.output, use.layout);
  for (const Shape& input : use.inputs) bytes += BytesOf(input, use.layout);
  return bytes;
}

}  // namespace

// The questions of a plan to which there are only guesses.
class GuessedQuestions final : public CostSource {
 public:
  explicit GuessedQuestions(LazyCosts& costs) : costs_(costs) {}

  double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) override {
    Add(TransformText(shape, from, to), [=, this] {
      const double seconds = costs_.measured_.TransformSeconds(shape, from, to);
      Learn(BytesOf(shape, from) + BytesOf(shape, to), seconds);
      return seconds;
    });
    return 0;
  }
  double CopySeconds(const Shape& shape, const Layout& layout) override {
    Add(CopyText(shape, layout), [=, this] {
      const double seconds = costs_.measured_.CopySeconds(shape, layout);
      Learn(2 * BytesOf(shape, layout), seconds);
      return seconds;
    });
    return 0;
  }
  double OpSeconds(const OpUse& use) override {
    Add(OpText(use), [=, this] {
      const double seconds = costs_.measured_.OpSeconds(use);
      const auto [least, is_new] = costs_.least_.try_emplace(OpUseText(use), seconds);
      least->second = std::min(least->second, seconds);
      Learn(BytesOf(use), seconds);
      return seconds;
    });
    return 0;
  }
  CrossingPrices PricesOfCrossing() override { return costs_.PricesOfCrossing(); }

  size_t Answer(const std::function<void(size_t, size_t)>& between) {
    size_t done = 0;
    for (const auto& [text, measure] : questions_) {
      if (between) between(done++, questions_.size());
      costs_.known_[text] = measure();
    }
    return questions_.size();
  }

 private:
  void Add(const std::string& text, std::function<double()> measure) {
    if (!costs_.known_.contains(text)) questions_.try_emplace(text, std::move(measure));
  }
  void Learn(double bytes, double seconds) {
    if (!(bytes > 0) || !(seconds > 0)) return;
    const double each = seconds / bytes;
    costs_.seconds_per_byte_ = costs_.seen_ ? std::min(costs_.seconds_per_byte_, each) : each;
    costs_.seen_ = true;
  }

  LazyCosts& costs_;
  std::map<std::string, std::function<double()>> questions_;
};

double LazyCosts::TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) {
  if (SameMemory(shape, from, to)) return 0;
  const auto found = known_.find(TransformText(shape, from, to));
  return found != known_.end() ? found->second : Guess(BytesOf(shape, from) + BytesOf(shape, to));
}

bool LazyCosts::IsInterpolated(const Shape& shape, const Layout& from, const Layout& to) const {
  return measured_.IsInterpolated(shape, from, to);
}

double LazyCosts::CopySeconds(const Shape& shape, const Layout& layout) {
  const auto found = known_.find(CopyText(shape, layout));
  return found != known_.end() ? found->second : Guess(2 * BytesOf(shape, layout));
}

double LazyCosts::OpSeconds(const OpUse& use) {
  if (const auto found = known_.find(OpText(use)); found != known_.end()) return found->second;
  const auto least = least_.find(OpUseText(use));
  return std::max(least != least_.end() ? kPartOfOtherLayouts * least->second : 0, Guess(BytesOf(use)));
}

size_t LazyCosts::Measure(const Graph& graph, const Plan& plan,
                          const std::function<void(size_t, size_t)>& between) {
  GuessedQuestions questions(*this);
  Plan paid = plan;
  PricePlan(graph, questions, paid);
  return questions.Answer(between);
}

void MeasurePaid(const Graph& graph, const std::vector<Record>& records, const GraphTuneOptions& options,
                 LazyCosts& costs, const std::function<bool()>& go_on) {
  // Guesses are low, so that there are always some to measure.
  constexpr int kMaxSolutions = 20;
  for (int i = 0; i < kMaxSolutions && go_on(); ++i) {
    const Plan plan = GraphTune(NetworkProblem(graph, records, costs, options)).plan;
    bool in_time = true;
    try {
      const size_t measured = costs.Measure(graph, plan, [&](size_t, size_t) {
        in_time = go_on();
        if (!in_time) throw Error(ErrorCode::kInterrupted, "out of time");
      });
      if (measured == 0) return;
    } catch (const Error& error) {
      if (in_time || error.code() != ErrorCode::kInterrupted) throw;
      return;
    }
  }
}

}  // namespace tilesmith
