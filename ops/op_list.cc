// The lists of op families: a new one adds its name to each, and defines std::vector<OpImporter>
// <Name>Importers(), where ONNX has the ops, and std::vector<SavedOp> <Name>Ops().
#include <algorithm>

#include "ops/base/op_registry.h"
#include "ops/base/saved_op.h"

// clang-format off
#define TILESMITH_OP_FAMILIES(F) \
  F(Activation) F(Attention) F(BatchNorm) F(Binary) F(Col2Im) F(Concat) F(Contrib) F(ControlFlow)          \
  F(Conv) F(ConvTranspose) F(DeformConv) F(Dependent) F(DepthToSpace) F(Einsum) F(Function)                \
  F(GatherScatter) F(Gemm) F(GridSample) F(Indexing) F(IntegerProduct) F(Logic) F(Lrn)                     \
  F(Normalization) F(Order) F(Pad) F(Pool) F(PoolIndices) F(PRelu) F(QLinear) F(Quantize) F(Rearrange)     \
  F(Recurrent) F(Reduce) F(Resize) F(RoiAlign) F(Scan) F(ShapeArithmetic) F(Softmax) F(Transpose)          \
  F(View)
#define TILESMITH_SAVED_FAMILIES(F) \
  F(Activation) F(Attention) F(BatchNorm) F(Binary) F(ByteTable) F(Col2Im) F(Concat)                     \
  F(ConvTranspose) F(DeformConv) F(DepthToSpace) F(Function) F(GatherScatter) F(GridSample)              \
  F(Indexing) F(IntegerProduct) F(Logic) F(MatMul) F(Normalization) F(Order) F(Pad) F(Pool)              \
  F(PoolIndices) F(Quantize) F(QuantizedBinary) F(QuantizedConv) F(QuantizedPool)                        \
  F(QuantizedScaleShift) F(Recurrent) F(Reduce) F(Resize) F(RoiAlign) F(Scan) F(ShapeArithmetic)         \
  F(Softmax) F(Transpose) F(View)
// clang-format on

namespace tilesmith {

#define TILESMITH_DECLARE_FAMILY(name) std::vector<OpImporter> name##Importers();
TILESMITH_OP_FAMILIES(TILESMITH_DECLARE_FAMILY)

#define TILESMITH_DECLARE_SAVED(name) std::vector<SavedOp> name##Ops();
TILESMITH_SAVED_FAMILIES(TILESMITH_DECLARE_SAVED)

namespace {

#define TILESMITH_NAME_FAMILY(name) name##Importers,
constexpr std::vector<OpImporter> (*kFamilies[])() = {TILESMITH_OP_FAMILIES(TILESMITH_NAME_FAMILY)};

std::vector<OpImporter> AllImporters() {
  std::vector<OpImporter> all;
  for (const auto& family : kFamilies) {
    for (OpImporter& importer : family()) all.push_back(std::move(importer));
  }
  std::ranges::sort(all, {}, &OpImporter::op_type);
  return all;
}

#define TILESMITH_NAME_SAVED(name) name##Ops,
constexpr std::vector<SavedOp> (*kSavedFamilies[])() = {TILESMITH_SAVED_FAMILIES(TILESMITH_NAME_SAVED)};

std::vector<SavedOp> AllSavedOps() {
  std::vector<SavedOp> all;
  for (const auto& family : kSavedFamilies) {
    for (const SavedOp& op : family()) all.push_back(op);
  }
  return all;
}

}  // namespace

const std::vector<SavedOp>& SavedOps() {
  static const std::vector<SavedOp> ops = AllSavedOps();
  return ops;
}

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
