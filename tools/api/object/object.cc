#include "tools/api/object/object.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "graph_tuner/compiled/compiled_file.h"
#include "layouts/base/sizes.h"
#include "layouts/base/thread_team.h"
#include "tools/api/object/memory.h"

namespace tilesmith {
namespace {

constexpr int64_t kScratchAlignment = 64;
// Of each thread, for what is thrown in a run, and gaps between blocks.
constexpr size_t kErrorBytes = 4096;

// At the beginning of scratch; what is allocated is behind it.
struct alignas(kScratchAlignment) Prepared {
  Prepared(std::byte* begin, size_t bytes) : arena(begin, bytes) {}

  const void* self = nullptr;  // it is prepared, and here
  const TilesmithObject* object = nullptr;
  Arena arena;
  size_t most_used = 0;  // of the arena, in a run
  Executor* executor = nullptr;
  const CompiledNetwork* network = nullptr;
};

bool IsAligned(const void* memory) {
  return memory != nullptr && reinterpret_cast<intptr_t>(memory) % kScratchAlignment == 0;
}

// One after the other, for preparing: threads of the caller's would allocate at the same time.
void RunInTurns(const void*, int threads, ThreadTeam::Region region) {
  for (int thread = 0; thread < threads; ++thread) region.call(region.body, thread);
}

struct Lent {
  const TilesmithPool* pool;
  Arena* arena;
};

void RunOnPool(const void* lent, int threads, ThreadTeam::Region region) {
  const auto& [pool, arena] = *static_cast<const Lent*>(lent);
  struct Context {
    ThreadTeam::Region region;
    Arena* arena;
  } context{region, arena};
  pool->parallel(
      pool->pool, threads,
      [](void* of, int thread) {
        const auto& [body, errors] = *static_cast<const Context*>(of);
        const ArenaScope scope(*errors);
        body.call(body.body, thread);
      },
      &context);
}

int Prepare(Prepared& prepared, const TilesmithObject& object) {
  const ArenaScope scope(prepared.arena);
  ThreadTeam team(RunInTurns, nullptr);
  const TeamScope in_turns(team);
  const CompiledFile file(object.before_code, object.code, "object");
  if (!RunsCode(file.networks()[0].target, DetectInstructions())) return kTilesmithInstructions;
  const auto network = LoadCompiled(file, 0, WaitPolicy::kSleep);
  const auto bytes = static_cast<size_t>(network->memory.bytes);
  void* const memory = prepared.arena.Allocate(bytes, kScratchAlignment);
  if (memory == nullptr) return kTilesmithFailed;
  SharedArena activations({{std::shared_ptr<void>(), std::memset(memory, 0, bytes)}, bytes});
  prepared.network = network.get();
  prepared.executor = new Executor(network, nullptr, &activations);
  prepared.arena.Keep();
  prepared.object = &object;
  prepared.self = &prepared;
  return kTilesmithOk;
}

int Run(Prepared& prepared, std::span<const void* const> inputs, std::span<void* const> outputs,
        const TilesmithPool* pool) {
  const ArenaScope scope(prepared.arena);
  const Lent lent{pool, &prepared.arena};
  ThreadTeam team(RunOnPool, &lent);
  const TeamScope on_pool(team);
  int status = kTilesmithOk;
  try {
    prepared.executor->Run(inputs, outputs);
  } catch (...) {
    status = kTilesmithFailed;
  }
  prepared.most_used = std::max(prepared.most_used, prepared.arena.used());
  prepared.arena.FreeRest();
  return status;
}

}  // namespace
}  // namespace tilesmith

using tilesmith::Prepared;

int tilesmith_object_init(void* scratch, const TilesmithObject* object) {
  if (!tilesmith::IsAligned(scratch)) return kTilesmithArgument;
  if (object->scratch_bytes < sizeof(Prepared)) return kTilesmithFailed;
  auto* const prepared = new (scratch)
      Prepared(static_cast<std::byte*>(scratch) + sizeof(Prepared), object->scratch_bytes - sizeof(Prepared));
  try {
    return tilesmith::Prepare(*prepared, *object);
  } catch (...) {
    return kTilesmithFailed;
  }
}

uint64_t tilesmith_object_used(const void* scratch) {
  const auto& prepared = *static_cast<const Prepared*>(scratch);
  const auto threads = static_cast<size_t>(prepared.network->device->threads());
  return static_cast<uint64_t>(tilesmith::RoundUp(
      static_cast<int64_t>(sizeof(Prepared) + prepared.most_used + threads * tilesmith::kErrorBytes),
      tilesmith::kScratchAlignment));
}

int tilesmith_object_run(const void* const* inputs, void* const* outputs, void* scratch,
                         const TilesmithPool* pool, const TilesmithObject* object) {
  if (!tilesmith::IsAligned(scratch) || inputs == nullptr || outputs == nullptr) return kTilesmithArgument;
  auto& prepared = *static_cast<Prepared*>(scratch);
  if (prepared.self != scratch || prepared.object != object) return kTilesmithNotPrepared;
  const tilesmith::CompiledNetwork& network = *prepared.network;
  const std::span in(inputs, network.inputs.size());
  const std::span out(outputs, network.outputs.size());
  if (!std::ranges::all_of(in, tilesmith::IsAligned) || !std::ranges::all_of(out, tilesmith::IsAligned))
    return kTilesmithArgument;
  if (network.device->threads() > 1 && (pool == nullptr || pool->parallel == nullptr))
    return kTilesmithArgument;
  return tilesmith::Run(prepared, in, out, pool);
}
