#include "graph_tuner/problem/weight_price.h"

namespace tilesmith {

double WeightPrice::Of(const Record& record) const {
  return seconds_per_byte > 0 ? seconds_per_byte * PackedWeightBytes(record, cpu) : 0;
}

}  // namespace tilesmith
