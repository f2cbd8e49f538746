#include "tools/bench/transform_bench.h"

#include "layouts/transform_benchmark.h"

namespace tilesmith {

Table TransformTable(const DevicePtr& machine) {
  const Shape shapes[] = {
      {1, 3, 224, 224}, {1, 64, 56, 56}, {1, 386, 14, 14}, {1, 2048, 7, 7}, {8, 64, 56, 56}};
  const Layout layouts[] = {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8), Layout::Blocked(16)};
  Table table("transforms", "",
              {{"shape", "shape"},
               {"from", "from"},
               {"to", "to"},
               {"seconds", "ms"},
               {"copy_seconds", "memcpy ms"},
               {"ratio", "memcpy / transform"}});
  for (const Shape& shape : shapes) {
    for (const Layout& from : layouts) {
      for (const Layout& to : layouts) {
        if (SameMemory(shape, from, to)) continue;
        const TransformTiming timing =
            MeasureTransform(shape, from, to, machine->target(), machine->threads());
        table.AddRow({TextCell(ShapeToString(shape)), TextCell(from.ToString()), TextCell(to.ToString()),
                      MillisecondsCell(timing.seconds), MillisecondsCell(timing.copy_seconds),
                      RatioCell(timing.copy_seconds / timing.seconds)});
      }
    }
  }
  return table;
}

}  // namespace tilesmith
