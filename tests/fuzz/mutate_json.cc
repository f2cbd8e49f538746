#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/fuzz/mutation.h"

namespace tilesmith::fuzz {
namespace {

using Json = nlohmann::ordered_json;  // members keep their order, which fast readers rely on

void Collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (!value.is_structured()) return;
  for (Json& child : value) Collect(child, all);
}

Json* RandomValue(std::vector<Json*>& all, Mutation& mutation) { return all[mutation.Below(all.size())]; }

std::string ExtremeString(const std::string& old, Mutation& mutation) {
  switch (mutation.Below(6)) {
    case 0:
      return "";
    case 1:
      return std::string(size_t{1} << mutation.Below(14), 'x');
    case 2:
      return old + "\"\\\n\x1b[31m\xff\xe2\x82\xac";
    case 3:
      if (!mutation.words.empty()) return std::string(mutation.random.Pick(mutation.words));
      [[fallthrough]];
    default:
      return MutateText(old, mutation);
  }
}

Json AnyValue(Mutation& mutation) {
  switch (mutation.Below(7)) {
    case 0:
      return nullptr;
    case 1:
      return mutation.OneIn(2);
    case 2:
      return Json::array();
    case 3:
      return Json::object();
    case 4:
      return mutation.OneIn(2) ? 1.7976931348623157e308 : 4.9e-324;
    case 5:
      return ExtremeString("", mutation);
    default:
      return ExtremeInteger(mutation);
  }
}

void MutateStructure(Json& value, Mutation& mutation) {
  const size_t index = mutation.Below(value.size());
  if (value.empty()) {
    value = AnyValue(mutation);
  } else if (value.is_array()) {
    const Json item = value[index];
    if (mutation.OneIn(2)) {
      value.erase(index);
    } else {
      const size_t times = mutation.OneIn(8) ? 1000 : 1;
      for (size_t i = 0; i < times; ++i) value.push_back(item);
    }
  } else {
    auto member = value.begin();
    std::advance(member, index);
    const std::string name = member.key();
    const Json content = member.value();
    value.erase(member);
    if (mutation.OneIn(2)) value[ExtremeString(name, mutation)] = content;
  }
}

void MutateValue(std::vector<Json*>& all, Mutation& mutation) {
  Json& value = *RandomValue(all, mutation);
  switch (mutation.Below(6)) {
    case 0:
      value = AnyValue(mutation);
      return;
    case 1: {
      const Json copy = *RandomValue(all, mutation);
      value = copy;
      return;
    }
    default:
      if (value.is_structured()) return MutateStructure(value, mutation);
      if (value.is_string()) {
        value = ExtremeString(value.get<std::string>(), mutation);
      } else if (value.is_number()) {
        value = ExtremeInteger(mutation);
      } else {
        value = AnyValue(mutation);
      }
  }
}

}  // namespace

std::string MutateJsonLines(std::string input, Mutation& mutation) {
  if (mutation.OneIn(4)) return MutateText(std::move(input), mutation);
  // The line around a random place.
  const size_t place = mutation.Below(input.size());
  const size_t before = place == 0 ? std::string::npos : input.rfind('\n', place - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const size_t end = std::min(input.find('\n', begin), input.size());
  Json line = Json::parse(input.begin() + static_cast<std::ptrdiff_t>(begin),
                          input.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
  if (line.is_discarded()) return MutateText(std::move(input), mutation);
  std::vector<Json*> all;
  Collect(line, all);
  MutateValue(all, mutation);
  return input.replace(begin, end - begin, line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace tilesmith::fuzz
