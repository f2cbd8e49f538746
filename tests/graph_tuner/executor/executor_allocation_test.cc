// Running allocates nothing. This file replaces the test binary's operator new and aligned_alloc, through
// which everything in this project allocates, by ones that count.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "graph_tuner/heuristic_plan.h"
#include "ops/nodes/activations.h"
#include "ops/nodes/concat.h"
#include "ops/nodes/pool.h"
#include "ops/nodes/softmax.h"
#include "ops/nodes/view.h"
#include "tests/graph_tuner/support/executor_testing.h"

namespace {

std::atomic<int64_t> allocations{0};

void* CountedAlloc(size_t bytes, size_t alignment) {
  ++allocations;
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) == 0 ? memory : nullptr;
}

void* CountedNew(size_t bytes, size_t alignment) {
  void* const memory = CountedAlloc(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Not inlined, lest the compiler see new's memory reach free and warn.
[[gnu::noinline]] void Release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(size_t bytes) { return CountedNew(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return CountedNew(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return CountedNew(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return CountedNew(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return CountedAlloc(bytes, alignof(std::max_align_t));
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return CountedAlloc(bytes, alignof(std::max_align_t));
}
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete[](void* memory) noexcept { Release(memory); }
void operator delete(void* memory, size_t) noexcept { Release(memory); }
void operator delete[](void* memory, size_t) noexcept { Release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { Release(memory); }
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return CountedAlloc(bytes, alignment);
}

namespace tilesmith {
namespace {

TEST(ExecutorAllocation, RunningAllocatesNothing) {
  Graph graph("g");
  const auto x = graph.Add("x", std::make_shared<InputOp>(Shape{2, 3, 12, 12}), {});
  const auto a = AddConv(graph, "a", {x}, 16, 3);
  const auto b = AddConv(graph, "b", {a}, 16);
  const auto c = AddConv(graph, "c", {b, a}, 16, 3);
  const auto cat = graph.Add("cat", std::make_shared<ConcatOp>(1), {c, b});
  const auto relu =
      graph.Add("relu", std::make_shared<ActivationOp>(Activation{ActivationKind::kHardSwish}), {cat});
  const auto pool = graph.Add("pool", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {relu});
  const auto flat = graph.Add("flat", std::make_shared<ViewOp>("Flatten", Shape{0, -1}), {pool});
  graph.MarkOutput(graph.Add("softmax", std::make_shared<SoftmaxOp>(1, 1), {flat}));
  const CpuInfo cpu = TestCpu();
  for (const Plan& plan : {HeuristicPlan(graph, cpu, 2), UniformPlan(graph, cpu, 1)}) {
    Executor executor(graph, plan, {cpu, 2});
    const std::vector<Tensor> inputs = RandomInputs(graph, 3);
    std::vector<Tensor> outputs = UnwrittenOutputs(graph);
    const auto input_pointers = Pointers(inputs);
    const auto output_pointers = Pointers(outputs);
    const int64_t before = allocations;
    executor.Run(input_pointers, output_pointers);  // the very first run, too
    executor.Run(input_pointers, output_pointers);
    EXPECT_EQ(allocations - before, 0);
    EXPECT_LE(RelativeDifference(outputs[0], RunReference(graph, Pointers(inputs))[0]), 1e-5);
    EXPECT_GT(allocations - before, 0) << "allocations are not counted";
  }
}

}  // namespace
}  // namespace tilesmith
