#include "templates/cuda/text.h"

#include <fmt/format.h>

#include <bit>

#include "layouts/base/check.h"

namespace tilesmith::cuda {
namespace {

std::string_view StoredAs(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "float";
    case DataType::kBf16:
      return "TsBf16";
    case DataType::kU8:
      return "unsigned char";
    case DataType::kI8:
      return "signed char";
    default:
      TILESMITH_CHECK(false, "kernels store no {}", DataTypeName(type));
  }
}

}  // namespace

ProgramText::ProgramText() { File("prelude.cu"); }

ProgramText& ProgramText::Begin(std::string_view name) { return Line(fmt::format("namespace {} {{", name)); }

ProgramText& ProgramText::End() {
  text_ += macros_;
  macros_.clear();
  return Line("}");
}

ProgramText& ProgramText::Constant(std::string_view name, int64_t value) {
  return Line(fmt::format("constexpr int {} = {};", name, value));
}

ProgramText& ProgramText::Macro(std::string_view name, int64_t value) {
  macros_ += fmt::format("#undef {}\n", name);
  return Line(fmt::format("#define {} {}", name, value));
}

ProgramText& ProgramText::Float(std::string_view name, float value) {
  return Line(fmt::format("__device__ __forceinline__ float {}() {{ return __uint_as_float({:#x}u); }}", name,
                          std::bit_cast<uint32_t>(value)));
}

ProgramText& ProgramText::Line(std::string_view text) {
  text_ += text;
  text_ += '\n';
  return *this;
}

ProgramText& ProgramText::File(std::string_view name) {
  const std::string_view text = KernelText(name);
  TILESMITH_CHECK(!text.empty(), "no kernel text {}", name);
  return Line(text);
}

ProgramText& ProgramText::Activate(const Activation& activation) {
  Constant("ACTIVATION", static_cast<int64_t>(activation.kind));
  Float("ALPHA", activation.alpha).Float("BETA", activation.beta);
  return File("finish.cu");
}

void AddConv(ProgramText& text, const ConvWorkload& w, const Layout& in, const Layout& out, int64_t bias_at) {
  const std::pair<std::string_view, int64_t> constants[] = {{"MB", w.mb},
                                                            {"G", w.g},
                                                            {"IC", w.ic / w.g},
                                                            {"IH", w.ih},
                                                            {"IW", w.iw},
                                                            {"OC", w.oc / w.g},
                                                            {"OH", w.oh},
                                                            {"OW", w.ow},
                                                            {"KH", w.kh},
                                                            {"KW", w.kw},
                                                            {"SH", w.sh},
                                                            {"SW", w.sw},
                                                            {"PH", w.ph},
                                                            {"PW", w.pw},
                                                            {"DH", w.dh + 1},
                                                            {"DW", w.dw + 1},
                                                            {"BIAS_AT", bias_at},
                                                            {"IN_BLOCK", in.BlockFor(w.ic)},
                                                            {"HAS_SUM", w.post.sum},
                                                            {"OUT_BLOCK", out.BlockFor(w.oc)},
                                                            {"HAS_BIAS", w.post.bias},
                                                            {"OUT_PADDING", out.PaddedChannels(w.oc) - w.oc}};
  for (const auto& [name, value] : constants) text.Constant(name, value);
  text.Line(fmt::format("typedef {} Out;", StoredAs(out.type()))).File("conv.cu");
  if (!w.bytes) {
    text.Activate(w.post.activation).File("post_ops.cu");
    return;
  }
  text.Constant("IN_SIGNED", in.type() == DataType::kI8)
      .Constant("OUT_IS_REAL", out.type() == DataType::kF32);
  text.File("requantize.cu");
}

}  // namespace tilesmith::cuda
