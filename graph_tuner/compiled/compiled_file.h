// Compiled networks as files, which run where they lie: steps, machine code, packed weights and constants
// behind one header (README.md says it byte by byte). Code is executed from the file, weights are read from
// it, so that all processes that map it share them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/executor/compiled_network.h"
#include "layouts/byte_stream.h"
#include "templates/device/device.h"

namespace tilesmith {

// Where a network comes from.
struct CompiledOrigin {
  std::string network;           // its name
  std::string graph_hash;        // GraphHash of the graph after all passes
  std::string plan_hash;         // PlanHash
  std::string version;           // of the program that compiled it
  double predicted_seconds = 0;  // 0: not known
};

struct CompiledModel {
  CompiledOrigin origin;
  std::shared_ptr<const CompiledNetwork> network;
};

// One of a file's networks: what it is and what it needs.
struct CompiledSummary {
  CompiledOrigin origin;
  Target target;  // that it was compiled for; it runs where RunsCode says so
  int threads = 1;
  std::vector<UserTensor> inputs, outputs;
};

// A part of a file: where it lies, and what its bytes sum up to.
struct CompiledSection {
  int64_t offset = 0, bytes = 0;
  uint64_t sum = 0;
};

// Whether code for `compiled` runs on `cpu`: these are CPUs, and the instructions are there.
bool RunsCode(const Target& compiled, const Target& cpu);

// Gives the file's bytes piece by piece, in their order. What networks share is written once. Throws
// Error(kUsage) naming what cannot be written: a network on another device than a CPU, or one of whose
// convolutions of bytes only the reference computes. Precondition: at least one.
void WriteCompiled(std::span<const CompiledModel> models,
                   const std::function<void(std::span<const std::byte>)>& write);

// Whether a file begins as a compiled one does; false where it cannot be read.
bool IsCompiledFile(const std::string& path);

// How many of a file's first bytes, of which `begin` has 4096, are no code; what is behind them is.
int64_t BytesBeforeCode(std::span<const std::byte> begin);

// A mapped file. Immutable, thread-safe. What was loaded from it keeps the mapping alive.
class CompiledFile {
 public:
  // Checks the header and what the file says of its networks, whose own tables are checked when they are
  // read; with `verify` the sums of weights and code, too. Throws Error(kEnvironment) where the file cannot
  // be read or mapped, and Error(kBadModel), naming it and what is wrong, where it is no such file, is
  // damaged, or of another version.
  explicit CompiledFile(const std::string& path, bool verify = false);
  // A file in the program's memory (tools/api/object), which lives as long as what is loaded from it: what is
  // before the code, at a multiple of 64 bytes, and the code, wherever it may be executed. Throws as for a
  // path; messages begin with `name`.
  CompiledFile(const std::byte* before_code, const std::byte* code, std::string name);

  const std::string& path() const { return path_; }
  const std::vector<CompiledSummary>& networks() const { return networks_; }
  // The number of the network that fits best: of those whose code runs on `cpu` and, where `inputs` is given,
  // whose inputs have these shapes, the one with the most instructions, of these the one for `threads`
  // threads, or else for the most below, or else for the fewest. Throws Error(kUsage) saying what is there
  // and what would be needed, where none fits.
  size_t Choose(const Target& cpu, int threads, const std::vector<Shape>* inputs = nullptr) const;
  // Reads the tables of a network as Load does, and builds nothing. Throws Error(kBadModel).
  void Check(size_t index) const { ReadTables(index); }
  // Precondition: a device with the network's target and threads. Throws Error(kBadModel).
  std::shared_ptr<const CompiledNetwork> Load(size_t index, DevicePtr device) const;

 private:
  struct Mapping;
  std::shared_ptr<CompiledNetwork> ReadTables(size_t index) const;
  [[noreturn]] void Refuse(const std::string& reason) const;
  void ReadHeader(std::span<const std::byte> all, bool verify);
  void ReadSummaries(uint64_t sum);

  const std::string path_;
  std::shared_ptr<const Mapping> mapping_;
  std::span<const std::byte> tables_, data_, code_;
  std::vector<CompiledSection> directory_;  // of each network its tables, from those of the file on
  std::vector<CompiledSummary> networks_;
};

// On a device of its own. Throws as Load does.
std::shared_ptr<const CompiledNetwork> LoadCompiled(const CompiledFile& file, size_t index, WaitPolicy wait);

}  // namespace tilesmith
