// A network run once on one thread.
#pragma once

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"

namespace tilesmith::fuzz {

// Whether running it takes milliseconds: the work of its convs and the elements of its tensors are few.
bool IsSmall(const Graph& graph);

// Builds the network as the plan says and runs it on made-up inputs. Precondition: the plan is for the graph.
void RunOnce(Graph graph, const Plan& plan, const Target& cpu);

}  // namespace tilesmith::fuzz
