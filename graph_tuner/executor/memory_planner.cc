#include "graph_tuner/executor/memory_planner.h"

#include <algorithm>
#include <limits>

#include "layouts/base/sizes.h"

namespace tilesmith {
namespace {

constexpr int64_t kCacheLine = 64;
constexpr int64_t kPage = 4096;
constexpr int64_t kLarge = 64 << 10;

int64_t Alignment(int64_t bytes) { return bytes >= kLarge ? kPage : kCacheLine; }

bool LivesBeside(const BufferRequest& a, const BufferRequest& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Span {
  int64_t begin = 0, end = 0;
};

// Start of the smallest gap between `taken` (sorted by begin) that holds `bytes`; after all of them when no
// gap does.
int64_t BestFit(std::span<const Span> taken, int64_t bytes) {
  const int64_t alignment = Alignment(bytes);
  int64_t best = 0, best_waste = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (const Span& span : taken) {
    const int64_t begin = RoundUp(end, alignment);
    if (begin + bytes <= span.begin && span.begin - end - bytes < best_waste) {
      best = begin;
      best_waste = span.begin - end - bytes;
    }
    end = std::max(end, span.end);
  }
  return best_waste == std::numeric_limits<int64_t>::max() ? RoundUp(end, alignment) : best;
}

MemoryPlan PlaceInOrder(std::span<const BufferRequest> requests, std::span<const size_t> order) {
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<size_t> placed;
  std::vector<Span> taken;
  for (const size_t index : order) {
    const BufferRequest& request = requests[index];
    taken.clear();
    for (const size_t other : placed) {
      if (!LivesBeside(request, requests[other])) continue;
      taken.push_back({plan.offsets[other], plan.offsets[other] + requests[other].bytes});
    }
    std::sort(taken.begin(), taken.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    plan.offsets[index] = BestFit(taken, request.bytes);
    plan.bytes = std::max(plan.bytes, RoundUp(plan.offsets[index] + request.bytes, kCacheLine));
    placed.push_back(index);
  }
  return plan;
}

// Buffers that need no memory are left out: networks have many, and time is the square of the number.
std::vector<size_t> InOrderOfTime(std::span<const BufferRequest> requests) {
  std::vector<size_t> order;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].bytes > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].first < requests[b].first; });
  return order;
}

// Requests of equal size are in order of time.
std::vector<size_t> LargestFirst(std::span<const BufferRequest> requests) {
  std::vector<size_t> order = InOrderOfTime(requests);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  return order;
}

struct Slot {
  int64_t bytes = 0;
  std::vector<size_t> buffers;  // by index
};

// The first is the largest of a slot.
std::vector<Slot> FillSlots(std::span<const BufferRequest> requests) {
  std::vector<Slot> slots;  // the largest first, as they are opened
  for (const size_t index : LargestFirst(requests)) {
    const auto is_free = [&](const Slot& slot) {
      return std::ranges::none_of(
          slot.buffers, [&](size_t other) { return LivesBeside(requests[index], requests[other]); });
    };
    const auto smallest = std::find_if(slots.rbegin(), slots.rend(), is_free);
    Slot& slot = smallest == slots.rend() ? slots.emplace_back() : *smallest;
    if (slot.buffers.empty()) slot.bytes = RoundUp(requests[index].bytes, Alignment(requests[index].bytes));
    slot.buffers.push_back(index);
  }
  return slots;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const BufferRequest> requests, int threads) {
  constexpr double kMaxForSlots = 1.5;  // times the packed plan's bytes
  // No arena is larger, so all that follows fits.
  Checked all = 0;
  for (const BufferRequest& request : requests) all += RoundUp(request.bytes, kPage) + Checked(kPage);
  MemoryPlan packed = PackMemory(requests);
  if (threads == 1) return packed;
  MemoryPlan in_slots = PlaceInSlots(requests);
  return static_cast<double>(in_slots.bytes) <= kMaxForSlots * static_cast<double>(packed.bytes) ? in_slots
                                                                                                 : packed;
}

MemoryPlan PackMemory(std::span<const BufferRequest> requests) {
  MemoryPlan by_time = PlaceInOrder(requests, InOrderOfTime(requests));
  MemoryPlan by_size = PlaceInOrder(requests, LargestFirst(requests));
  return by_size.bytes < by_time.bytes ? by_size : by_time;
}

MemoryPlan PlaceInSlots(std::span<const BufferRequest> requests) {
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  for (const Slot& slot : FillSlots(requests)) {
    for (const size_t index : slot.buffers) {
      const int64_t alignment = Alignment(requests[index].bytes);
      plan.offsets[index] = plan.bytes + (slot.bytes - requests[index].bytes) / 2 / alignment * alignment;
    }
    plan.bytes += slot.bytes;
  }
  return plan;
}

}  // namespace tilesmith
