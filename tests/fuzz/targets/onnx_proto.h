// ONNX messages as fuzz inputs: protobuf's text form, so that seeds can be read and written by hand, or the
// binary form. A mutated input may be either.
#pragma once

#include <string>

#include "tests/fuzz/mutation.h"

namespace tilesmith::fuzz {

// The message's bytes as a file would have them; an input that is no text form stands for itself.
std::string ModelBytes(const std::string& input);
std::string TensorBytes(const std::string& input);

// Mutates fields of the message, whatever they are: numbers become extremes, strings other strings of the
// message, parts are repeated, dropped, swapped, or taken from elsewhere. At times the bytes instead.
std::string MutateModel(std::string input, Mutation& mutation);
std::string MutateTensor(std::string input, Mutation& mutation);

}  // namespace tilesmith::fuzz
