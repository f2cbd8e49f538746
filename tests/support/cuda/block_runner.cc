#include "tests/support/cuda/block_runner.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef __x86_64__
#include <ucontext.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "layouts/base/sizes.h"

namespace tilesmith {

struct EmulatedIndex {
  unsigned x = 0, y = 0, z = 0;
};

// TsHooks of emulation.inc.
struct EmulatedHooks {
  EmulatedIndex thread, block;
  float* shared = nullptr;
  void (*block_barrier)() = nullptr;
  void (*warp_barrier)() = nullptr;
  void* (*slot)(unsigned lane) = nullptr;
  void (*copy)(float* shared, const float* global, int floats, bool inside) = nullptr;
  void (*commit)() = nullptr;
  void (*wait)(int groups) = nullptr;
};

namespace {

constexpr int64_t kMaxThreads = 1024, kWarp = 32, kStackBytes = 64 << 10, kMaxSharedBytes = 256 << 10;
constexpr size_t kSlotBytes = 64;
constexpr float kNotThere = std::numeric_limits<float>::quiet_NaN();

[[noreturn]] void Die(const char* why) {
  std::fprintf(stderr, "emulated CUDA kernel: %s\n", why);
  std::abort();
}

std::byte* Map(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) Die("no memory");
  return static_cast<std::byte*>(memory);
}

#ifdef __x86_64__
// Saves what a called function must keep, and the stack's pointer at *from; goes on with what was saved at
// to.
extern "C" void TilesmithSwitchFiber(void** from, void* to);
asm(R"(
.text
.globl TilesmithSwitchFiber
.type TilesmithSwitchFiber, @function
TilesmithSwitchFiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size TilesmithSwitchFiber, .-TilesmithSwitchFiber
)");

struct Context {
  void* stack = nullptr;
};
void Prepare(Context& context, std::byte* stack, void (*entry)()) {
  auto** const top = reinterpret_cast<void**>(stack + kStackBytes);
  top[-1] = nullptr;  // where `entry` would return to, which it does not
  top[-2] = reinterpret_cast<void*>(entry);
  std::fill(top - 8, top - 2, nullptr);
  context.stack = top - 8;
}
void Switch(Context& from, Context& to) { TilesmithSwitchFiber(&from.stack, to.stack); }
#else
using Context = ucontext_t;
void Prepare(Context& context, std::byte* stack, void (*entry)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, entry, 0);
}
void Switch(Context& from, Context& to) { swapcontext(&from, &to); }
#endif

struct Copy {
  float* to = nullptr;
  int floats = 0;
  float values[4] = {};
  int group = 0;
};

enum class State { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };

struct Fiber {
  Context context;
  State state = State::kDone;
  std::vector<Copy> copies;
  int groups = 0;  // committed
};

class BlockRunner {
 public:
  BlockRunner() : stacks_(Map(kMaxThreads * kStackBytes)), fibers_(kMaxThreads) {
    const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
    std::byte* const shared = Map(static_cast<size_t>(kMaxSharedBytes + page));
    shared_end_ = shared + kMaxSharedBytes;
    mprotect(shared_end_, static_cast<size_t>(page), PROT_NONE);
    hooks.block_barrier = [] { Runner().Stop(State::kAtBlockBarrier); };
    hooks.warp_barrier = [] { Runner().Stop(State::kAtWarpBarrier); };
    hooks.slot = [](unsigned lane) -> void* {
      return Runner().slots_[Runner().current_ / kWarp * kWarp + lane];
    };
    hooks.copy = [](float* to, const float* from, int floats, bool inside) {
      Runner().AddCopy(to, from, floats, inside);
    };
    hooks.commit = [] { ++Runner().fibers_[Runner().current_].groups; };
    hooks.wait = [](int groups) { Runner().Await(groups); };
  }

  static BlockRunner& Runner() {
    static BlockRunner* const runner = new BlockRunner;
    return *runner;
  }

  void Run(EmulatedFunction function, EmulatedIndex block, int64_t threads, int64_t shared_bytes,
           const CudaArguments& arguments, bool descending) {
    if (threads > kMaxThreads || shared_bytes > kMaxSharedBytes || shared_bytes % 16 != 0)
      Die("too large a block");
    function_ = function;
    arguments_ = &arguments;
    threads_ = threads;
    hooks.block = block;
    hooks.shared = reinterpret_cast<float*>(shared_end_ - shared_bytes);
    std::fill_n(hooks.shared, shared_bytes / kFloatBytes, kNotThere);
    for (int64_t i = 0; i < threads; ++i) {
      Prepare(fibers_[i].context, stacks_ + i * kStackBytes, [] { Runner().Thread(); });
      fibers_[i].state = State::kReady;
      fibers_[i].copies.clear();
      fibers_[i].groups = 0;
    }
    while (!All(0, threads, State::kDone)) {
      const int64_t warps = CeilDiv(threads, kWarp);
      for (int64_t w = 0; w < warps; ++w) RunWarp(descending ? warps - 1 - w : w, descending);
      if (All(0, threads, State::kDone)) break;
      if (!All(0, threads, State::kAtBlockBarrier)) Die("a barrier that not all threads reach");
      Release(0, threads);
    }
  }

  EmulatedHooks hooks;

 private:
  bool All(int64_t begin, int64_t end, State state) const {
    return std::all_of(fibers_.begin() + begin, fibers_.begin() + end,
                       [&](const Fiber& f) { return f.state == state; });
  }
  void Release(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fibers_[i].state = State::kReady;
  }

  // Until all of its lanes wait for the block, or are done.
  void RunWarp(int64_t warp, bool descending) {
    const int64_t begin = warp * kWarp, end = std::min(threads_, begin + kWarp);
    for (;;) {
      for (int64_t i = 0; i < end - begin; ++i) {
        current_ = descending ? end - 1 - i : begin + i;
        if (fibers_[current_].state != State::kReady) continue;
        hooks.thread = {static_cast<unsigned>(current_), 0, 0};
        Switch(scheduler_, fibers_[current_].context);
      }
      if (!All(begin, end, State::kAtWarpBarrier)) break;
      Release(begin, end);
    }
    for (int64_t i = begin; i < end; ++i)
      if (fibers_[i].state == State::kAtWarpBarrier) Die("a warp that is not of one mind");
  }

  [[gnu::no_sanitize("address")]] void Thread() {
    function_(*arguments_);
    Await(0);
    Stop(State::kDone);
  }

  void Stop(State state) {
    Fiber& fiber = fibers_[current_];
    fiber.state = state;
    Switch(fiber.context, scheduler_);
  }

  void AddCopy(float* to, const float* from, int floats, bool inside) {
    const auto misaligned = [&](const float* p) {
      return reinterpret_cast<uintptr_t>(p) % (floats * sizeof(float)) != 0;
    };
    if (misaligned(to) || (inside && misaligned(from))) Die("a misaligned copy");
    Copy copy{.to = to, .floats = floats, .group = fibers_[current_].groups};
    if (inside) std::copy_n(from, floats, copy.values);
    std::fill_n(to, floats, kNotThere);
    fibers_[current_].copies.push_back(copy);
  }

  // Group g is complete once at most `groups` younger ones are open.
  void Await(int groups) {
    Fiber& fiber = fibers_[current_];
    std::erase_if(fiber.copies, [&](const Copy& copy) {
      if (copy.group >= fiber.groups - groups) return false;
      std::copy_n(copy.values, copy.floats, copy.to);
      return true;
    });
  }

  std::byte* const stacks_;
  std::byte* shared_end_ = nullptr;
  std::vector<Fiber> fibers_;
  Context scheduler_;
  alignas(kSlotBytes) std::byte slots_[kMaxThreads][kSlotBytes];
  int64_t current_ = 0, threads_ = 0;
  EmulatedFunction function_ = nullptr;
  const CudaArguments* arguments_ = nullptr;
};

}  // namespace

EmulatedHooks* HooksOfBlockRunner() { return &BlockRunner::Runner().hooks; }

void RunBlocks(EmulatedFunction function, const std::array<int64_t, 3>& grid, int64_t threads,
               int64_t shared_bytes, const CudaArguments& arguments) {
  bool descending = false;
  for (unsigned z = 0; z < grid[2]; ++z) {
    for (unsigned y = 0; y < grid[1]; ++y) {
      for (unsigned x = 0; x < grid[0]; ++x) {
        BlockRunner::Runner().Run(function, {x, y, z}, threads, shared_bytes, arguments, descending);
        descending = !descending;
      }
    }
  }
}

}  // namespace tilesmith
