#include "layouts/producer_state.h"

#include "layouts/base/thread_team.h"

namespace tilesmith {

void WriteAsProducer(void* data, int64_t bytes, int thread, int threads) {
  constexpr int64_t kLineBytes = 64;
  const TaskRange share = ShareOf(bytes, (thread + 1) % threads, threads);
  for (int64_t i = share.begin; i < share.end; i += kLineBytes) {
    volatile char* const line = static_cast<char*>(data) + i;
    *line = *line;
  }
}

}  // namespace tilesmith
