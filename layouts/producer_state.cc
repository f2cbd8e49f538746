#include "layouts/producer_state.h"

#include "layouts/base/thread_team.h"

namespace tilesmith {

void WriteAsProducer(void* data, int64_t bytes, int share, int threads) {
  constexpr int64_t kLineBytes = 64;
  const TaskRange range = ShareOf(bytes, share, threads);
  for (int64_t i = range.begin; i < range.end; i += kLineBytes) {
    volatile char* const line = static_cast<char*>(data) + i;
    *line = *line;
  }
}

}  // namespace tilesmith
