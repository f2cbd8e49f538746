// Tuning logs of Apache TVM's AutoTVM, format 0.2: one JSON object a line.
//
//     {"input": [target, task, [data, kernel, strides, padding, dilation, layout, out_layout, dtype], {}],
//      "config": {"index": n, "code_hash": null, "entity": [[knob, "sp", [outer, inner]], [knob, "ot",
//      value]]}, "result": [[seconds...], error_no, all_cost, timestamp], "version": 0.2, "tvm_version":
//      "..."}
//
// Tensors are ["TENSOR", shape, dtype]; kernels OIHW, of depthwise convs (channels, multiplier, H, W); while
// a network is compiled they may also be packed, NCHWc. Padding is top, left, bottom, right; dilation 1 is
// none. The schedule of both tasks is a register tile of tile_oc (inner) channels by tile_ow (inner)
// positions over blocks of tile_ic (inner) input channels, those being the x of the layouts; 1x1 convs have
// tile_oh rows, the others unroll_kw. Cost 1e9 with a non-zero error_no is a failure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

struct ImportedRecord {
  Record record;
  bool same_tiles = false;  // its config has all of TVM's tiles, not only the ones nearest to them
};

// A record of the direct template for conv2d_NCHWc.x86, of the depthwise one for depthwise_conv2d_NCHWc.x86.
// The tiles become ic_block, oc_block, oc_vectors (block), width_tile and rows; what has no equal is lost on
// the valid config nearest to them, and `detail` says so. The timings stay, under a target named by the text
// of TVM's, which is no machine of ours: such records are kept apart and never win. `tuner` is "autotvm",
// `origin` the line's input and config. Where TVM does not say how many threads it took, 1. Throws
// Error(kUsage) saying what is malformed or not understood: another format version, task or dtype.
ImportedRecord RecordFromAutotvm(std::string_view line);

// The inverse: exact for imported records, but for all_cost (their sum of samples) and the timestamp (whole
// seconds). Others are written with their own tiles, those of ours that TVM has a name for, and their CPU as
// target. Throws Error(kUsage) for records of other templates, of fused convs, and of groups.
std::string RecordToAutotvm(const Record& record);

// Records of a conv alone, for networks that compute more along with it: tuners that know no post-ops, as
// AutoTVM did, measure the conv by itself.
//
// For each of `workloads` that is the record's conv but for its post-ops: the record as if it were of that
// workload, at the times of its own, with the config that the template accepts there nearest to its own, and
// `detail` saying so. Fused workloads, and records of unknown templates, give none.
std::vector<Record> AdoptPostOps(const Record& record, std::span<const ConvWorkload> workloads);

// Target texts of Apache TVM: "llvm -mcpu=skylake-avx512 -num-cores=4".
//
// From -mcpu and -mattr. AVX2 where they name neither, since no template is tuned for less.
Isa IsaOfAutotvmTarget(std::string_view target);
// From -num-cores, or 1.
int CoresOfAutotvmTarget(std::string_view target);
// A CPU with these instructions. The portable ISA is plain "llvm".
std::string AutotvmTargetText(Isa isa);

}  // namespace tilesmith
