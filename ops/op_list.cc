// The list of op families: a new one adds its header and its line here.
#include <algorithm>

#include "ops/nodes/activations.h"
#include "ops/nodes/batch_norm.h"
#include "ops/nodes/binary.h"
#include "ops/nodes/concat.h"
#include "ops/nodes/conv.h"
#include "ops/nodes/conv_transpose.h"
#include "ops/nodes/depth_to_space.h"
#include "ops/nodes/functions.h"
#include "ops/nodes/gemm.h"
#include "ops/nodes/indexing.h"
#include "ops/nodes/lrn.h"
#include "ops/nodes/pad.h"
#include "ops/nodes/pool.h"
#include "ops/nodes/prelu.h"
#include "ops/nodes/reduce.h"
#include "ops/nodes/resize.h"
#include "ops/nodes/shape_arithmetic.h"
#include "ops/nodes/softmax.h"
#include "ops/nodes/transpose.h"
#include "ops/nodes/view.h"
#include "ops/op_registry.h"

namespace tilesmith {
namespace {

constexpr std::vector<OpImporter> (*kFamilies[])() = {
    ActivationImporters,
    BatchNormImporters,
    BinaryImporters,
    ConcatImporters,
    ConvImporters,
    ConvTransposeImporters,
    DepthToSpaceImporters,
    FunctionImporters,
    GemmImporters,
    IndexingImporters,
    LrnImporters,
    PadImporters,
    PoolImporters,
    PReluImporters,
    ReduceImporters,
    ResizeImporters,
    SoftmaxImporters,
    TransposeImporters,
    ShapeArithmeticImporters,
    ViewImporters,
};

std::vector<OpImporter> AllImporters() {
  std::vector<OpImporter> all;
  for (const auto& family : kFamilies) {
    for (OpImporter& importer : family()) all.push_back(std::move(importer));
  }
  std::ranges::sort(all, {}, &OpImporter::op_type);
  return all;
}

}  // namespace

const std::vector<OpImporter>& OpImporters() {
  static const std::vector<OpImporter> importers = AllImporters();
  return importers;
}

const OpImporter* FindOpImporter(std::string_view op_type) {
  const std::vector<OpImporter>& importers = OpImporters();
  const auto found = std::ranges::lower_bound(importers, op_type, {}, &OpImporter::op_type);
  return found != importers.end() && found->op_type == op_type ? &*found : nullptr;
}

}  // namespace tilesmith
