// NumPy arrays, alone and in archives.
#include "tests/fuzz/targets/targets.h"
#include "tools/cli/npz.h"

namespace tilesmith::fuzz {
namespace {

constexpr std::string_view kWords[] = {"'descr': ", "'fortran_order': ",
                                       "'shape': ", "False",
                                       "True",      "<f4",
                                       "<f8",       "<i8",
                                       "<f2",       "<V2",
                                       "<u4",       "<i4",
                                       "|u1",       "|i1",
                                       "|b1",       ">f4",
                                       "(1, 3,)",   "()",
                                       "(0,)",      "(4294967296, 4294967296)",
                                       "\x93NUMPY"};

// A shape has no more elements than bytes were given.
void RequirePlausible(const Tensor& tensor, size_t bytes) {
  Require(static_cast<size_t>(tensor.size()) <= bytes, "no more elements than bytes");
}

void RunNpy(const std::string& input) {
  const InputFile file(input);
  RequirePlausible(ReadNpy(file.path()), input.size());
}

void RunNpz(const std::string& input) {
  const InputFile file(input);
  constexpr size_t kDeflateRatio = 1032;  // at most, zlib's technical details say
  for (const NamedTensor& entry : ReadNpz(file.path()))
    RequirePlausible(entry.second, kDeflateRatio * input.size());
}

std::string Mutate(std::string input, Mutation& mutation) {
  return mutation.OneIn(2) ? MutateBytes(std::move(input), mutation) : MutateText(std::move(input), mutation);
}

}  // namespace

FuzzTarget NpyTarget() {
  return {.name = "npy",
          .reads = "a NumPy array",
          .run = RunNpy,
          .mutate = Mutate,
          .words = kWords,
          .short_runs = 10000};
}

FuzzTarget NpzTarget() {
  return {.name = "npz",
          .reads = "an archive of NumPy arrays",
          .run = RunNpz,
          .mutate = Mutate,
          .words = kWords,
          .short_runs = 10000};
}

}  // namespace tilesmith::fuzz
