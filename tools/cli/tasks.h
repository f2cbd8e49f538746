// Convolutions and products as people see them.
#pragma once

#include <string>

#include "graph_tuner/planner/conv_tasks.h"

namespace tilesmith {

// What tables say is fused: "two convs", "input ops", or nothing.
std::string FusionText(const ConvWorkload& workload);
// "64x56x56 -> 64x56x56, 3x3 /2", and what else is unusual; "12 products of 197x64 and 64x197t", t for
// transposed.
std::string ShapeText(const ConvWorkload& workload);
// Whether the text, or what follows its last ">", begins with a field and its number, and is no path:
// "v2.jsonl".
bool LooksLikeWorkload(const std::string& text);

}  // namespace tilesmith
