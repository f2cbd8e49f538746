// Random small networks and random plans for them: concats (nested, shared, repeated), residuals, gates,
// views, constants, several outputs; every layout a node may have.
#pragma once

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tests/support/random.h"

namespace tilesmith {

Graph RandomNetwork(TestRandom& random);

// Random layouts for every node: configs for convs, of the portable template or, on a reproducible target, of
// any; any layout an op runs in for others.
Plan RandomPlan(const Graph& graph, const Target& cpu, TestRandom& random);

}  // namespace tilesmith
