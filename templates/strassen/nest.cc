// The Strassen template's loops in words.
#include <algorithm>

#include "templates/direct/row_product.h"
#include "templates/strassen/schedule.h"

namespace tilesmith::strassen {

LoopNest NestOf(const Schedule& g) {
  const direct::Schedule product =
      direct::MakeSchedule(ProductOf(g.workload, g.config.row), g.config.product, g.vector_floats);
  const Partition partition = g.config.partition;
  const int64_t pairs = CountPairs(g.workload), half = g.workload.oc / 2;
  int64_t widest = 1;
  for (const direct::Chunk& chunk : product.chunks) widest = std::max<int64_t>(widest, chunk.vectors);
  const Loop images = LoopOver("mb", g.workload.mb, 1, LoopKind::kTasks);
  const Loop blocks =
      LoopOver("pairs", pairs, g.config.block(),
               partition == Partition::kOwnSums ? LoopKind::kLoop : LoopKind::kTasks, "blocks of pixels");
  const Loop chunks = LoopOver("oc", half, widest * g.vector_floats,
                               partition == Partition::kBlocks ? LoopKind::kLoop : LoopKind::kTasks,
                               "chunks of half the channels");
  const Loop rows = LoopOver("pairs", g.config.block(), g.config.row, LoopKind::kLoop, "rows");
  const Loop row = LoopOver("pairs", g.config.row, 1, LoopKind::kLoop);
  const Loop lanes = LoopOver("oc", g.vector_floats, 1, LoopKind::kVector);

  LoopPart add, multiply, combine;
  add.title = "add up the input: pairs of pixels, halves of the channels";
  add.loops = {LoopOver("ic", g.workload.ic / 2, g.vector_floats, LoopKind::kLoop),
               LoopOver("pairs", g.config.block(), 1, LoopKind::kLoop),
               LoopOver("ic", g.vector_floats, 1, LoopKind::kVector)};
  add.body = g.in_place ? "V = 4 sums; the other operands are the input itself" : "V = 7 operands";
  multiply.title = "multiply: seven matrix products of half the channels";
  multiply.loops = {rows, LoopOver("product", kProducts, 1, LoopKind::kLoop)};
  const std::vector<Loop> inner = direct::RowLoops(product, "pairs");
  multiply.loops.insert(multiply.loops.end(), inner.begin(), inner.end());
  multiply.body = direct::RowBody(product);
  multiply.covers = 8.0 / kProducts;
  combine.title = "add up the products";
  combine.loops = {rows, LoopOver("oc", widest * g.vector_floats, g.vector_floats, LoopKind::kLoop), row,
                   lanes};
  combine.body = "4 outputs = sums of 7 products";
  add.covers = combine.covers = 0;

  const auto put_around = [](LoopPart& part, std::initializer_list<Loop> loops) {
    part.loops.insert(part.loops.begin(), loops);
  };
  LoopNest nest;
  switch (partition) {
    case Partition::kBlocks:
      nest.tasks = {images, blocks};
      for (LoopPart* part : {&multiply, &combine}) put_around(*part, {chunks});
      break;
    case Partition::kOutChannels:
      put_around(add, {images, blocks});
      for (LoopPart* part : {&multiply, &combine}) put_around(*part, {chunks, images, blocks});
      break;
    case Partition::kOwnSums:
      nest.tasks = {images, chunks};
      for (LoopPart* part : {&add, &multiply, &combine}) put_around(*part, {blocks});
      break;
  }
  nest.parts = {std::move(add), std::move(multiply), std::move(combine)};
  direct::SetTileBytes(product, nest);
  return nest;
}

}  // namespace tilesmith::strassen
