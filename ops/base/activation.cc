#include "ops/base/activation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "ops/base/elementary.h"

namespace tilesmith {
namespace {

struct KindName {
  std::string_view name;
  ActivationKind kind;
  int parameters;  // how many of alpha, beta it has
  std::string_view form;
};

constexpr KindName kKinds[] = {
    {"relu", ActivationKind::kRelu, 0, "relu"},
    {"clip", ActivationKind::kClip, 2, "clip:LOW:HIGH"},
    {"leaky_relu", ActivationKind::kLeakyRelu, 1, "leaky_relu:ALPHA"},
    {"hard_sigmoid", ActivationKind::kHardSigmoid, 2, "hard_sigmoid:ALPHA:BETA"},
    {"hard_swish", ActivationKind::kHardSwish, 0, "hard_swish"},
    {"sigmoid", ActivationKind::kSigmoid, 0, "sigmoid"},
    {"tanh", ActivationKind::kTanh, 0, "tanh"},
    {"silu", ActivationKind::kSilu, 0, "silu"},
};

[[noreturn]] void Unknown(std::string_view text) {
  std::string forms;
  for (const KindName& kind : kKinds) forms += fmt::format("{}{}", forms.empty() ? "" : ", ", kind.form);
  throw Error(ErrorCode::kUsage, fmt::format("unknown activation \"{}\" (known: {})", text, forms));
}

float ParseParameter(std::string_view activation, std::string_view text) {
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("activation \"{}\": expected a number, got \"{}\"", activation, text));
  }
  return value;
}

// 1e30, not 1e+30: in a workload's text a + begins the next post-op.
std::string ParameterText(float value) {
  std::string text = fmt::format("{}", value);
  std::erase(text, '+');
  return text;
}

}  // namespace

float Activation::Apply(float x) const {
  switch (kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return std::max(x, 0.0f);
    case ActivationKind::kClip:
      return std::min(std::max(x, alpha), beta);
    case ActivationKind::kLeakyRelu:
      return x >= 0 ? x : alpha * x;
    case ActivationKind::kHardSigmoid:
      return std::min(std::max(alpha * x + beta, 0.0f), 1.0f);
    case ActivationKind::kHardSwish:
      return x * std::min(std::max(x / 6 + 0.5f, 0.0f), 1.0f);
    case ActivationKind::kSigmoid:
      return static_cast<float>(1 / (1 + elementary::Exp(-static_cast<double>(x))));
    case ActivationKind::kTanh:
      return static_cast<float>(elementary::Tanh(x));
    case ActivationKind::kSilu:
      return static_cast<float>(std::max(x, std::numeric_limits<float>::lowest()) /
                                (1 + elementary::Exp(-static_cast<double>(x))));
  }
  return x;
}

std::string ActivationToString(const Activation& activation) {
  for (const KindName& kind : kKinds) {
    if (kind.kind != activation.kind) continue;
    std::string text(kind.name);
    if (kind.parameters >= 1) text += ":" + ParameterText(activation.alpha);
    if (kind.parameters >= 2) text += ":" + ParameterText(activation.beta);
    return text;
  }
  return "";
}

Activation ParseActivation(std::string_view text) {
  if (text.empty()) return {};
  const std::string_view name = text.substr(0, text.find(':'));
  const KindName* kind = std::ranges::find(kKinds, name, &KindName::name);
  if (kind == std::end(kKinds)) Unknown(text);
  Activation activation{kind->kind};
  float* const parameters[] = {&activation.alpha, &activation.beta};
  std::string_view rest = text.substr(name.size());
  int count = 0;
  while (!rest.empty() && count < kind->parameters) {
    rest.remove_prefix(1);
    const std::string_view field = rest.substr(0, rest.find(':'));
    *parameters[count++] = ParseParameter(text, field);
    rest.remove_prefix(field.size());
  }
  if (!rest.empty() || count != kind->parameters) {
    throw Error(ErrorCode::kUsage, fmt::format("activation \"{}\": expected {}", text, kind->form));
  }
  return activation;
}

}  // namespace tilesmith
