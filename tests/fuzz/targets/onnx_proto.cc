#include "tests/fuzz/targets/onnx_proto.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <onnx/onnx_pb.h>

#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace tilesmith::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Silence : google::protobuf::io::ErrorCollector {
  void AddError(int, int, const std::string&) override {}
};

template <typename Proto>
std::optional<Proto> Parse(const std::string& input) {
  Proto proto;
  Silence silence;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silence);
  if (parser.ParseFromString(input, &proto)) return proto;
  if (proto.ParseFromString(input)) return proto;
  return std::nullopt;
}

// All messages inside, and the strings that stand for names.
struct Parts {
  std::vector<Message*> messages;
  std::vector<std::string> strings;
};

void Collect(Message& message, Parts& parts) {
  parts.messages.push_back(&message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Collect(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                     : *reflection.MutableMessage(&message, field),
                parts);
      } else if (field->type() == FieldDescriptor::TYPE_STRING || field->name() == "s" ||
                 field->name() == "strings") {
        parts.strings.push_back(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                                     : reflection.GetString(message, field));
      }
    }
  }
}

// One random change to one field of one message inside a message.
class FieldMutator {
 public:
  FieldMutator(Message& root, Mutation& mutation) : root_(root), mutation_(mutation) {
    Collect(root, parts_);
  }

  void Mutate() {
    message_ = parts_.messages[mutation_.Below(parts_.messages.size())];
    reflection_ = message_->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection_->ListFields(*message_, &fields);
    const auto& type = *message_->GetDescriptor();
    if (type.field_count() == 0) return;
    const bool any = fields.empty() || mutation_.OneIn(8);
    field_ = any ? type.field(static_cast<int>(mutation_.Below(static_cast<size_t>(type.field_count()))))
                 : fields[mutation_.Below(fields.size())];
    if (field_->is_repeated()) return MutateRepeated();
    if (mutation_.OneIn(10)) return reflection_->ClearField(message_, field_);
    if (field_->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return Replace(*MessageAt(-1));
    SetScalar(-1);
  }

 private:
  int Size() const { return reflection_->FieldSize(*message_, field_); }
  int Index() const { return static_cast<int>(mutation_.Below(static_cast<size_t>(Size()))); }

  Message* MessageAt(int index) {
    return index < 0 ? reflection_->MutableMessage(message_, field_)
                     : reflection_->MutableRepeatedMessage(message_, field_, index);
  }

  void MutateRepeated() {
    const bool messages = field_->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const int size = Size();
    const uint64_t kind = size == 0 ? 0 : mutation_.Below(6);
    if (kind == 0) {
      const int times = mutation_.OneIn(16) ? 200 : 1;
      for (int i = 0; i < times && Size() < 2000; ++i) Append(messages);
    } else if (kind == 1) {
      reflection_->SwapElements(message_, field_, Index(), size - 1);
      reflection_->RemoveLast(message_, field_);
    } else if (kind == 2) {
      reflection_->SwapElements(message_, field_, Index(), Index());
    } else if (messages) {
      Replace(*MessageAt(Index()));
    } else {
      SetScalar(Index());
    }
  }

  // A copy of what is there already, if anything is.
  void Append(bool messages) {
    if (messages) {
      const int old = Size();
      Message* const added = reflection_->AddMessage(message_, field_);
      if (old > 0) added->CopyFrom(reflection_->GetRepeatedMessage(*message_, field_, 0));
      return Replace(*added);
    }
    AddScalar();
  }

  // Another message of the same type from anywhere, in one of four cases.
  void Replace(Message& message) {
    if (!mutation_.OneIn(4)) return;
    Parts now;  // where a oneof got another member, what the one before held is gone
    Collect(root_, now);
    const Message* const other = now.messages[mutation_.Below(now.messages.size())];
    if (other->GetDescriptor() != message.GetDescriptor() || other == &message) return;
    const std::unique_ptr<Message> copy(other->New());  // it may contain the message
    copy->CopyFrom(*other);
    message.CopyFrom(*copy);
  }

  int64_t Integer(int64_t old) {
    if (mutation_.OneIn(2)) return ExtremeInteger(mutation_);
    return static_cast<int64_t>(static_cast<uint64_t>(old) + mutation_.random.Next() % 7 - 3);
  }
  double Real() {
    constexpr double kReals[] = {0, -0.0, 1, -1, 0.5, 2, 1e-38, 1e-45, 3e38, 1e308, 1e9, -1e9};
    return mutation_.OneIn(6) ? std::numeric_limits<double>::quiet_NaN()
                              : mutation_.random.Pick(std::span(kReals));
  }
  std::string Text(const std::string& old) {
    if (field_->type() == FieldDescriptor::TYPE_BYTES && field_->name() == "raw_data")
      return MutateBytes(old, mutation_);
    const bool word = !mutation_.words.empty() && mutation_.OneIn(3);
    if (word) return std::string(mutation_.random.Pick(mutation_.words));
    if (!parts_.strings.empty() && !mutation_.OneIn(6))
      return parts_.strings[mutation_.Below(parts_.strings.size())];
    // What is not UTF-8 has no text form.
    std::string text = mutation_.OneIn(2) ? "" : old + "\x1b[31m";
    return text;
  }

  void SetScalar(int at) {
    const Reflection& r = *reflection_;
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_ENUM:
        return SetInt32(at);
      case FieldDescriptor::CPPTYPE_INT64:
        return at < 0 ? r.SetInt64(message_, field_, Integer(r.GetInt64(*message_, field_)))
                      : r.SetRepeatedInt64(message_, field_, at,
                                           Integer(r.GetRepeatedInt64(*message_, field_, at)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return at < 0 ? r.SetUInt64(message_, field_, static_cast<uint64_t>(Integer(0)))
                      : r.SetRepeatedUInt64(message_, field_, at, static_cast<uint64_t>(Integer(0)));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return at < 0 ? r.SetFloat(message_, field_, Float())
                      : r.SetRepeatedFloat(message_, field_, at, Float());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return at < 0 ? r.SetDouble(message_, field_, Real())
                      : r.SetRepeatedDouble(message_, field_, at, Real());
      case FieldDescriptor::CPPTYPE_STRING:
        return at < 0 ? r.SetString(message_, field_, Text(r.GetString(*message_, field_)))
                      : r.SetRepeatedString(message_, field_, at,
                                            Text(r.GetRepeatedString(*message_, field_, at)));
      default:
        return;
    }
  }

  // A double beyond float's range must not be converted.
  float Float() {
    const double real = Real();
    return real > 3.4e38 ? std::numeric_limits<float>::infinity() : static_cast<float>(real);
  }

  void SetInt32(int at) {
    const Reflection& r = *reflection_;
    const auto value = static_cast<int32_t>(mutation_.OneIn(3) ? Integer(0) : mutation_.Below(24));
    if (field_->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      at < 0 ? r.SetInt32(message_, field_, value) : r.SetRepeatedInt32(message_, field_, at, value);
    } else if (field_->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      const auto& values = *field_->enum_type();
      const int number =
          values.value(static_cast<int>(mutation_.Below(static_cast<size_t>(values.value_count()))))
              ->number();
      at < 0 ? r.SetEnumValue(message_, field_, number)
             : r.SetRepeatedEnumValue(message_, field_, at, number);
    }
  }

  void AddScalar() {
    const Reflection& r = *reflection_;
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r.AddInt32(message_, field_, static_cast<int32_t>(mutation_.Below(24)));
      case FieldDescriptor::CPPTYPE_INT64:
        return r.AddInt64(message_, field_, Integer(1));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r.AddUInt64(message_, field_, static_cast<uint64_t>(Integer(1)));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r.AddFloat(message_, field_, Float());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r.AddDouble(message_, field_, Real());
      case FieldDescriptor::CPPTYPE_STRING:
        return r.AddString(message_, field_, Text(""));
      default:
        return;
    }
  }

  Message& root_;
  Mutation& mutation_;
  Parts parts_;
  Message* message_ = nullptr;
  const Reflection* reflection_ = nullptr;
  const FieldDescriptor* field_ = nullptr;
};

template <typename Proto>
std::string Bytes(const std::string& input) {
  Proto proto;
  Silence silence;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silence);
  return parser.ParseFromString(input, &proto) ? proto.SerializeAsString() : input;
}

template <typename Proto>
std::string MutateProto(std::string input, Mutation& mutation) {
  if (mutation.OneIn(12)) return MutateBytes(Bytes<Proto>(input), mutation);
  std::optional<Proto> proto = Parse<Proto>(input);
  if (!proto) return MutateBytes(std::move(input), mutation);
  FieldMutator(*proto, mutation).Mutate();
  std::string text;
  google::protobuf::TextFormat::PrintToString(*proto, &text);
  return text;
}

}  // namespace

std::string ModelBytes(const std::string& input) { return Bytes<onnx::ModelProto>(input); }
std::string TensorBytes(const std::string& input) { return Bytes<onnx::TensorProto>(input); }

std::string MutateModel(std::string input, Mutation& mutation) {
  return MutateProto<onnx::ModelProto>(std::move(input), mutation);
}
std::string MutateTensor(std::string input, Mutation& mutation) {
  return MutateProto<onnx::TensorProto>(std::move(input), mutation);
}

}  // namespace tilesmith::fuzz
