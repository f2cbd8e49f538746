// One side of a comparison of whole networks in a process of its own: no thread pool, allocator or pinning of
// the other side's is near.
//
// JSON lines over standard input and output:
//   worker: {"ready": "tilesmith 0.1.0",            once the network has run once
//            "peak_bytes": 191234048}               the most memory the process has had by then
//   bench:  {"runs": 20}                            worker: {"seconds": 0.0021}, of one run
// It leaves when its input ends.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tilesmith {

constexpr uint64_t kNetworkSeed = 1;  // of the inputs, on both sides

struct WorkingNetwork {
  std::string name;  // what is ready
  std::function<void()> run;
};

// Returns the exit code.
int ServeNetwork(const WorkingNetwork& network, int in_fd, int out_fd);

}  // namespace tilesmith
