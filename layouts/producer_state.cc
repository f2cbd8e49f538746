#include "layouts/producer_state.h"

#include "layouts/base/thread_team.h"

namespace tilesmith {

void WriteAsProducer(float* data, int64_t floats, int thread, int threads) {
  constexpr int64_t kFloatsPerLine = 16;
  const TaskRange share = ShareOf(floats, (thread + 1) % threads, threads);
  for (int64_t i = share.begin; i < share.end; i += kFloatsPerLine) {
    volatile float* const line = data + i;
    *line = *line;
  }
}

}  // namespace tilesmith
