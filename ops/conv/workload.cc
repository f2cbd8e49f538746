#include "ops/conv/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

// Larger sizes are refused, so that products of a few of them cannot overflow.
constexpr int64_t kLargestSize = 1 << 24;
constexpr double kLargestTensor = 1e12;

struct WorkloadField {
  std::string_view name;
  int64_t ConvWorkload::*member;
};

// In canonical order.
constexpr WorkloadField kFields[] = {
    {"g", &ConvWorkload::g},   {"mb", &ConvWorkload::mb}, {"ic", &ConvWorkload::ic},
    {"ih", &ConvWorkload::ih}, {"iw", &ConvWorkload::iw}, {"oc", &ConvWorkload::oc},
    {"oh", &ConvWorkload::oh}, {"ow", &ConvWorkload::ow}, {"kh", &ConvWorkload::kh},
    {"kw", &ConvWorkload::kw}, {"sh", &ConvWorkload::sh}, {"sw", &ConvWorkload::sw},
    {"ph", &ConvWorkload::ph}, {"pw", &ConvWorkload::pw}, {"dh", &ConvWorkload::dh},
    {"dw", &ConvWorkload::dw},
};
constexpr size_t kFieldCount = std::size(kFields);

constexpr size_t FieldIndex(std::string_view name) {
  for (size_t i = 0; i < kFieldCount; ++i) {
    if (kFields[i].name == name) return i;
  }
  return kFieldCount;
}

// Pairs of a height and a width field that default to each other.
constexpr std::pair<size_t, size_t> kTwins[] = {
    {FieldIndex("ih"), FieldIndex("iw")}, {FieldIndex("oh"), FieldIndex("ow")},
    {FieldIndex("kh"), FieldIndex("kw")}, {FieldIndex("sh"), FieldIndex("sw")},
    {FieldIndex("ph"), FieldIndex("pw")}, {FieldIndex("dh"), FieldIndex("dw")},
};

int64_t Extent(int64_t kernel, int64_t dilation) { return (kernel - 1) * (dilation + 1) + 1; }

// The output size with as much padding at the end as at the start; 0 when the kernel does not fit.
int64_t DeducedOutput(int64_t input, int64_t extent, int64_t stride, int64_t pad) {
  const int64_t room = input + 2 * pad - extent;
  return room < 0 || stride <= 0 ? 0 : room / stride + 1;
}

class Parser {
 public:
  // The conv that begins at `begin` and ends where the text does.
  Parser(std::string_view text, size_t begin) : text_(text), at_(begin) {}

  ConvWorkload ParseConv() {
    while (at_ < text_.size() && text_[at_] != '+' && text_[at_] != ':') ParseField();
    while (at_ < text_.size() && text_[at_] == '+') ParsePostOp();
    if (at_ < text_.size()) ParseTypes();
    for (const std::string_view name : {"ic", "ih", "oc", "kh"}) {
      if (!seen_[FieldIndex(name)] && !seen_[TwinOf(FieldIndex(name))]) {
        at_ = text_.size();
        Fail(fmt::format("the field {} is missing", name));
      }
    }
    FillTwins();
    if (!seen_[FieldIndex("oh")]) DeduceOutput();
    return workload_;
  }

  // Whether the text begins with fields of a product: m, n or k right away or behind mb.
  bool IsProduct() const {
    size_t at = at_;
    if (text_.substr(at).starts_with("mb"))
      at = std::min(text_.find_first_not_of("0123456789_", at + 2), text_.size());
    const std::string_view rest = text_.substr(at);
    return rest.size() > 1 && rest[1] >= '0' && rest[1] <= '9' &&
           (rest[0] == 'm' || rest[0] == 'n' || rest[0] == 'k');
  }

  ConvWorkload ParseProduct() {
    ProductDims sizes;
    ProductForm form;
    int64_t left = 0, right = 0;
    const std::pair<std::string_view, int64_t*> fields[] = {{"mb", &sizes.count},  {"m", &sizes.rows},
                                                            {"n", &sizes.columns}, {"k", &sizes.terms},
                                                            {"ta", &left},         {"tb", &right}};
    std::array<bool, std::size(fields)> seen{};
    while (at_ < text_.size()) {
      const std::string_view name = FieldName();
      const auto* field = std::ranges::find(fields, name, &std::pair<std::string_view, int64_t*>::first);
      if (field == std::end(fields)) {
        Fail(fmt::format("unknown field \"{}\" of a product (known: mb m n k ta tb)",
                         name.empty() ? text_.substr(at_, 8) : name));
      }
      if (std::exchange(seen[field - fields], true)) Fail(fmt::format("the field {} is given twice", name));
      at_ += name.size();
      *field->second = ParseNumber(name, name[0] == 't' ? 1 : kLargestSize);
      while (at_ < text_.size() && text_[at_] == '_') ++at_;
    }
    for (const size_t needed : {1, 2, 3}) {
      if (!seen[needed]) Fail(fmt::format("the field {} is missing", fields[needed].first));
    }
    form.left_transposed = left != 0, form.right_transposed = right != 0;
    return ProductWorkload(sizes, form);
  }

  InputOps ParseInputOps() {
    InputOps ops;
    size_t end = 0;
    do {
      end = std::min(text_.find('+', at_), text_.size());
      const std::string_view name = text_.substr(at_, end - at_);
      bool twice = false;
      if (name == "scale_shift") {
        twice = std::exchange(ops.scale_shift, true);
      } else {
        twice = ops.activation.kind != ActivationKind::kNone;
        ops.activation = ParseInputActivation(name);
      }
      if (twice) Fail(fmt::format("a second {}", name == "scale_shift" ? name : "activation"));
      at_ = end + 1;
    } while (end < text_.size());
    return ops;
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorCode::kUsage, fmt::format("workload \"{}\", character {}: {}", text_, at_ + 1, reason));
  }

  static size_t TwinOf(size_t field) {
    for (const auto& [height, width] : kTwins) {
      if (field == height) return width;
      if (field == width) return height;
    }
    return field;
  }

  void ParseField() {
    if (text_[at_] == '_') {
      ++at_;
      return;
    }
    const std::string_view name = FieldName();
    const size_t end = at_ + name.size();
    if (name == "n" && end < text_.size() && text_[end] == '"') return SkipName(end);
    const size_t field = FieldIndex(name);
    if (name.empty()) Fail(fmt::format("expected a field name such as ic, got \"{}\"", text_.substr(at_, 8)));
    if (field == kFieldCount) {
      Fail(fmt::format(
          "unknown field \"{}\" (known: g mb ic ih iw oc oh ow kh kw sh sw ph pw dh dw n\"name\")", name));
    }
    if (seen_[field]) Fail(fmt::format("the field {} is given twice", name));
    at_ = end;
    workload_.*kFields[field].member = ParseNumber(name, kLargestSize);
    seen_[field] = true;
  }

  // The letters that come next, which stay there.
  std::string_view FieldName() const {
    size_t end = at_;
    while (end < text_.size() && text_[end] >= 'a' && text_[end] <= 'z') ++end;
    return text_.substr(at_, end - at_);
  }

  int64_t ParseNumber(std::string_view name, int64_t largest) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0 || value > largest) {
      Fail(fmt::format("expected a number from 0 to {} after \"{}\", got \"{}\"", largest, name,
                       text_.substr(at_, 8)));
    }
    at_ = stop - text_.data();
    return value;
  }

  void SkipName(size_t quote) {
    const size_t end = text_.find('"', quote + 1);
    if (end == std::string_view::npos) {
      at_ = quote;
      Fail("the name has no closing quote");
    }
    at_ = end + 1;
  }

  void ParseTypes() {
    const auto next = [&](std::string_view what, bool may_be_real) {
      const size_t begin = std::min(at_ + 1, text_.size());
      const size_t end = std::min(text_.find(':', begin), text_.size());
      const std::string_view name = text_.substr(begin, end - begin);
      for (const DataType type : {DataType::kU8, DataType::kI8, DataType::kF32}) {
        if (name != DataTypeName(type) || (type == DataType::kF32 && !may_be_real)) continue;
        at_ = end;
        return type;
      }
      Fail(fmt::format("the {} are of type \"{}\" (allowed: u8, i8{})", what, name,
                       may_be_real ? ", f32" : ""));
    };
    ByteTypes types;
    types.in = next("inputs", false);
    types.weights = next("weights", false);
    types.out = next("outputs", true);
    if (at_ < text_.size()) Fail("more than three types");
    workload_.bytes = types;
  }

  void ParsePostOp() {
    const std::string_view name = PostOpAt(at_ + 1);
    PostOps& post = workload_.post;
    if (name == "bias" || name == "sum") {
      bool& flag = name == "bias" ? post.bias : post.sum;
      if (flag) Fail(fmt::format("the post-op {} is given twice", name));
      flag = true;
    } else {
      if (post.activation.kind != ActivationKind::kNone) Fail("more than one activation");
      if (name.empty()) Fail("expected a post-op after \"+\": bias, sum or an activation");
      try {
        post.activation = ParseActivation(name);
      } catch (const Error& error) {
        Fail(fmt::format("expected a post-op: bias, sum or an activation: {}", error.what()));
      }
    }
    at_ += 1 + name.size();
  }

  // Up to the next one or the types.
  std::string_view PostOpAt(size_t begin) const {
    size_t end = begin;
    while (end < text_.size() && text_[end] != '+' && !(text_[end] == ':' && TypesBegin(end))) ++end;
    return text_.substr(begin, end - begin);
  }
  // Parameters of an activation stand behind a colon too, but they are numbers.
  bool TypesBegin(size_t colon) const {
    const std::string_view rest = text_.substr(colon + 1);
    return rest.starts_with(DataTypeName(DataType::kU8)) || rest.starts_with(DataTypeName(DataType::kI8));
  }

  Activation ParseInputActivation(std::string_view name) const {
    if (name.empty()) Fail("expected a conv or input ops before \">\"");
    try {
      return ParseActivation(name);
    } catch (const Error& error) {
      Fail(fmt::format("expected a conv or input ops, scale_shift or an activation: {}", error.what()));
    }
  }

  void DeduceOutput() {
    ConvWorkload& w = workload_;
    w.oh = DeducedOutput(w.ih, Extent(w.kh, w.dh), w.sh, w.ph);
    w.ow = DeducedOutput(w.iw, Extent(w.kw, w.dw), w.sw, w.pw);
  }

  void FillTwins() {
    for (const auto& [height, width] : kTwins) {
      if (seen_[height] == seen_[width]) continue;
      const auto [from, to] = seen_[height] ? std::pair(height, width) : std::pair(width, height);
      workload_.*kFields[to].member = workload_.*kFields[from].member;
      seen_[to] = true;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  ConvWorkload workload_;
  std::array<bool, kFieldCount> seen_{};
};

[[noreturn]] void Invalid(const ConvWorkload& workload, const std::string& reason) {
  throw Error(ErrorCode::kUsage, fmt::format("workload \"{}\": {}", WorkloadToString(workload), reason));
}

// One axis of the output: the padding at its end follows from its size, and must be one that makes sense.
struct Axis {
  std::string_view name;
  int64_t input, output, extent, stride, pad, end_pad;
};

void ValidateAxis(const ConvWorkload& workload, const Axis& axis) {
  if (axis.pad + axis.input < axis.extent - std::max<int64_t>(axis.end_pad, 0)) {
    Invalid(workload, fmt::format("the kernel extends over {} and the padded input has only {}", axis.extent,
                                  axis.input + axis.pad + std::max<int64_t>(axis.end_pad, 0)));
  }
  if (axis.end_pad <= -axis.stride || axis.end_pad > axis.pad + axis.extent - 1) {
    Invalid(workload,
            fmt::format("{}{} fits no padding at the end: it would be {}, allowed are {} to {} (with as much "
                        "as at the start, {}{})",
                        axis.name, axis.output, axis.end_pad, 1 - axis.stride, axis.pad + axis.extent - 1,
                        axis.name, DeducedOutput(axis.input, axis.extent, axis.stride, axis.pad)));
  }
}

// Where the parts of "A>B" are cut; a name may hold the sign too.
std::vector<size_t> FindArrows(std::string_view text) {
  std::vector<size_t> arrows;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    quoted ^= text[i] == '"';
    if (text[i] == '>' && !quoted) arrows.push_back(i);
  }
  return arrows;
}

// A conv begins with a field and its number or quote; input ops are names alone.
bool AreInputOps(std::string_view text) {
  const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  return end == std::string_view::npos || text[end] == '+' || text[end] == ':';
}

void ValidateBytes(const ConvWorkload& w) {
  if (w.post.activation.kind != ActivationKind::kNone)
    Invalid(w, "activations of bytes are limits, of which a workload says nothing");
  if (w.fused()) Invalid(w, "nothing can be fused in front of a conv of bytes");
  if (w.post.sum && w.bytes->out == DataType::kF32) Invalid(w, "a residual is added to bytes only");
}

void ValidateFused(const ConvWorkload& w) {
  if (w.product && w.fused()) Invalid(w, "nothing can be fused in front of a product");
  if (!w.pre.activation.fusable()) {
    Invalid(w, fmt::format("{} cannot be fused into a conv", ActivationToString(w.pre.activation)));
  }
  if (w.before.empty()) return;
  const ConvWorkload& first = w.before[0];
  if (w.before.size() > 1 || first.fused() || w.pre.any()) {
    Invalid(w, "only one conv, or only input ops, can be fused in front of a conv");
  }
  if (first.product) Invalid(w, "a product cannot be fused in front of a conv");
  ValidateWorkload(first);
  if (first.bytes) Invalid(w, "a conv of bytes cannot be fused in front of another");
  if (first.post.sum) Invalid(w, "the first of two fused convs cannot add a residual");
  if (first.output_shape() != w.main_input_shape()) {
    Invalid(w, fmt::format("the first conv gives {}, the second reads {}",
                           ShapeToString(first.output_shape()), ShapeToString(w.main_input_shape())));
  }
}

std::string InputOpsToString(const InputOps& ops) {
  std::string activation = ActivationToString(ops.activation);
  if (!ops.scale_shift) return activation;
  return activation.empty() ? "scale_shift" : "scale_shift+" + activation;
}

}  // namespace

ConvWorkload ProductWorkload(const ProductDims& sizes, const ProductForm& form) {
  ConvWorkload w;
  w.mb = sizes.count;
  w.ic = sizes.terms;
  w.oc = sizes.columns;
  w.ih = w.oh = sizes.rows;
  w.iw = w.ow = 1;
  w.product = form;
  return w;
}

std::string WorkloadToString(const ConvWorkload& w) {
  if (w.product) {
    return fmt::format("mb{}m{}n{}k{}{}{}", w.mb, w.oh, w.oc, w.ic, w.product->left_transposed ? "ta1" : "",
                       w.product->right_transposed ? "tb1" : "");
  }
  std::string text;
  for (const ConvWorkload& first : w.before) text += WorkloadToString(first) + ">";
  if (w.pre.any()) text += InputOpsToString(w.pre) + ">";
  if (w.g != 1) text += fmt::format("g{}", w.g);
  text += fmt::format("mb{}", w.mb);
  // `fallback` is the value at which neither twin is printed.
  const auto pair = [&text](std::string_view name, int64_t height, int64_t width,
                            std::optional<int64_t> fallback) {
    if (height == fallback && width == fallback) return;
    text += fmt::format("{}h{}", name, height);
    if (width != height) text += fmt::format("{}w{}", name, width);
  };
  text += fmt::format("ic{}", w.ic);
  pair("i", w.ih, w.iw, {});
  text += fmt::format("oc{}", w.oc);
  pair("o", w.oh, w.ow, {});
  pair("k", w.kh, w.kw, {});
  pair("s", w.sh, w.sw, 1);
  pair("p", w.ph, w.pw, 0);
  pair("d", w.dh, w.dw, 0);
  if (w.post.bias) text += "+bias";
  if (w.post.sum) text += "+sum";
  if (w.post.activation.kind != ActivationKind::kNone) text += "+" + ActivationToString(w.post.activation);
  if (w.bytes) {
    const auto& [in, weights, out] = *w.bytes;
    text += fmt::format(":{}:{}:{}", DataTypeName(in), DataTypeName(weights), DataTypeName(out));
  }
  return text;
}

ConvWorkload ParseWorkload(std::string_view text) {
  const std::vector<size_t> arrows = FindArrows(text);
  if (arrows.size() > 1) {
    throw Error(ErrorCode::kUsage,
                fmt::format("workload \"{}\", character {}: a second \">\", only one is allowed", text,
                            arrows[1] + 1));
  }
  Parser parser(text, arrows.empty() ? 0 : arrows[0] + 1);
  ConvWorkload workload = parser.IsProduct() ? parser.ParseProduct() : parser.ParseConv();
  if (!arrows.empty()) {
    const std::string_view front = text.substr(0, arrows[0]);
    if (AreInputOps(front)) {
      workload.pre = Parser(front, 0).ParseInputOps();
    } else {
      workload.before.push_back(Parser(front, 0).ParseConv());
    }
  }
  ValidateWorkload(workload);
  return workload;
}

void ValidateWorkload(const ConvWorkload& w) {
  for (const WorkloadField& field : kFields) {
    const bool may_be_zero = field.name[0] == 'p' || field.name[0] == 'd';
    const bool output = field.name == "oh" || field.name == "ow";
    const int64_t value = w.*field.member;
    if (output || (value >= (may_be_zero ? 0 : 1) && value <= kLargestSize)) continue;
    Invalid(w, fmt::format("{} is {}, allowed are {} to {}", field.name, value, may_be_zero ? 0 : 1,
                           kLargestSize));
  }
  if (w.oh < 1 || w.ow < 1) Invalid(w, "the output is empty: the kernel does not fit the padded input");
  if (w.ic % w.g != 0 || w.oc % w.g != 0) {
    Invalid(w, fmt::format("the {} groups do not divide ic{} and oc{}", w.g, w.ic, w.oc));
  }
  ValidateAxis(w, {"oh", w.ih, w.oh, Extent(w.kh, w.dh), w.sh, w.ph, w.pad_bottom()});
  ValidateAxis(w, {"ow", w.iw, w.ow, Extent(w.kw, w.dw), w.sw, w.pw, w.pad_right()});
  const double largest = std::max(
      {static_cast<double>(w.mb) * w.ic * w.ih * w.iw, static_cast<double>(w.mb) * w.oc * w.oh * w.ow,
       static_cast<double>(w.product ? w.mb : 1) * w.oc * (w.ic / w.g) * w.kh * w.kw});
  if (largest > kLargestTensor) {
    Invalid(w, fmt::format("a tensor has {:g} elements, allowed are {:g}", largest, kLargestTensor));
  }
  if (!w.post.activation.fusable()) {
    Invalid(w, fmt::format("{} cannot be fused into a conv", ActivationToString(w.post.activation)));
  }
  if (w.bytes) ValidateBytes(w);
  ValidateFused(w);
}

// Where it takes less time than a plain sum on the CPUs that were measured.
int64_t OrderTile(const ConvWorkload& w) {
  constexpr int64_t kTile = 4, kFewestChannels = 16, kFewestPixels = 144;
  const bool is_plain = w.g == 1 && !w.bytes && !w.product;
  const bool is_3x3 = w.kh == 3 && w.kw == 3 && w.sh == 1 && w.sw == 1 && w.dh == 0 && w.dw == 0;
  const bool pays = std::min(w.ic, w.oc) >= kFewestChannels && w.oh * w.ow >= kFewestPixels;
  return is_plain && is_3x3 && pays ? kTile : 0;
}

}  // namespace tilesmith
