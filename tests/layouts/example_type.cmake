# Adds a type to copies of the files that layouts/add_a_type.md names in its first step: f8, the upper half of a
# binary16. What is compiled with ${example_type} in front of the sources has it. An edit whose place is gone stops CMake.
set(example_type ${CMAKE_CURRENT_BINARY_DIR}/example_type)

# insert(FILE PLACE TEXT): TEXT comes before the only PLACE in the copy of FILE; with REPLACE behind them, instead.
function(insert file place text)
  string(FIND "${${file}}" "${place}" first)
  string(FIND "${${file}}" "${place}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "layouts/${file} has not one \"${place}\": say how a type is added to it now")
  endif()
  if(NOT "${ARGN}" STREQUAL "REPLACE")
    string(APPEND text "${place}")
  endif()
  string(REPLACE "${place}" "${text}" changed "${${file}}")
  set(${file} "${changed}" PARENT_SCOPE)
endfunction()

foreach(file data_type.h data_type.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/layouts/${file})
  file(READ ${PROJECT_SOURCE_DIR}/layouts/${file} ${file})
endforeach()

insert(data_type.h "};\nconstexpr int kDataTypes = 12;" "  kF8,\n};\nconstexpr int kDataTypes = 13;" REPLACE)
insert(data_type.h "namespace data_type_detail {" [=[
// A number that lies between two of binary16 becomes the odd one: what is nearest to it then is so to both.
constexpr uint16_t OddF16Bits(float value) {
  const uint16_t bits = F16Bits(value);
  const float rounded = FromF16Bits(bits);
  if (rounded == value || value != value || (bits & 1)) return bits;
  const bool too_large = (rounded < value) == (value < 0);
  return static_cast<uint16_t>(too_large ? bits - 1 : bits + 1);
}

struct F8 {
  uint8_t bits = 0;
  constexpr F8() = default;
  constexpr explicit F8(float value) : bits(BitsOf(value)) {}
  constexpr operator float() const { return FromF16Bits(static_cast<uint16_t>(bits << 8)); }

 private:
  static constexpr uint8_t BitsOf(float value) {
    const uint16_t half = OddF16Bits(value);
    if (value != value) return static_cast<uint8_t>(half >> 8);
    return static_cast<uint8_t>((half + 0x7f + (half >> 8 & 1)) >> 8);
  }
};

]=])
insert(data_type.h "// clang-format on\n}  // namespace data_type_detail"
       "template <> struct TypeOf<F8> { static constexpr DataType kType = DataType::kF8; };\n")
insert(data_type.h "    case DataType::kBool:\n" "    case DataType::kF8:\n      return visit(TypeTag<F8>());\n")
insert(data_type.h "type == DataType::kF16 ||" "type == DataType::kF8 || ")
insert(data_type.h "std::same_as<From, F16> ||" "std::same_as<From, F8> || ")
insert(data_type.h "std::same_as<To, F16> ||" "std::same_as<To, F8> || ")
insert(data_type.cc "\"bool\"" "\"bool\", \"f8\"" REPLACE)

foreach(file data_type.h data_type.cc)
  file(CONFIGURE OUTPUT ${example_type}/layouts/${file} CONTENT "${${file}}" @ONLY)
endforeach()
