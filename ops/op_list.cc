// The list of op families: a new one adds its header and its line here.
#include <algorithm>

#include "ops/base/op_registry.h"
#include "ops/contrib/contrib.h"
#include "ops/control/control_flow.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/dense/attention.h"
#include "ops/dense/einsum.h"
#include "ops/dense/gemm.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/elementwise/logic.h"
#include "ops/elementwise/prelu.h"
#include "ops/movement/col2im.h"
#include "ops/movement/concat.h"
#include "ops/movement/depth_to_space.h"
#include "ops/movement/gather_scatter.h"
#include "ops/movement/indexing.h"
#include "ops/movement/pad.h"
#include "ops/movement/rearrange.h"
#include "ops/movement/shape_arithmetic.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "ops/pool/pool.h"
#include "ops/pool/pool_indices.h"
#include "ops/quantize/integer_products.h"
#include "ops/quantize/quantize.h"
#include "ops/recurrent/recurrent.h"
#include "ops/reduce/lrn.h"
#include "ops/reduce/normalization.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/resize/resize.h"
#include "ops/sampling/deform_conv.h"
#include "ops/sampling/grid_sample.h"
#include "ops/sampling/roi_align.h"
#include "ops/selection/dependent.h"
#include "ops/selection/order.h"

namespace tilesmith {
namespace {

// A family a line.
// clang-format off
constexpr std::vector<OpImporter> (*kFamilies[])() = {
    ActivationImporters,
    AttentionImporters,
    BatchNormImporters,
    BinaryImporters,
    Col2ImImporters,
    ConcatImporters,
    ContribImporters,
    ControlFlowImporters,
    ConvImporters,
    ConvTransposeImporters,
    DeformConvImporters,
    DependentImporters,
    DepthToSpaceImporters,
    EinsumImporters,
    FunctionImporters,
    GatherScatterImporters,
    GemmImporters,
    GridSampleImporters,
    IndexingImporters,
    IntegerProductImporters,
    LogicImporters,
    LrnImporters,
    NormalizationImporters,
    OrderImporters,
    PadImporters,
    PoolImporters,
    PoolIndicesImporters,
    PReluImporters,
    QLinearImporters,
    QuantizeImporters,
    RearrangeImporters,
    RecurrentImporters,
    ReduceImporters,
    ResizeImporters,
    RoiAlignImporters,
    ScanImporters,
    ShapeArithmeticImporters,
    SoftmaxImporters,
    TransposeImporters,
    ViewImporters,
};
// clang-format on

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
