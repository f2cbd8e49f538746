#include "graph_tuner/costs/op_costs.h"

#include "graph_tuner/costs/costs_timing.h"

namespace tilesmith {

std::string OpUseText(const OpUse& use) {
  std::string text(use.op->Signature());
  for (const Shape& shape : use.inputs) text += " " + ShapeToString(shape);
  return text + " -> " + ShapeToString(use.output);
}

double OpCosts::Seconds(const OpUse& use) {
  const CostKey key{{"kind", "op"}, {"op", OpUseText(use)}, {"layout", use.layout.ToString()}};
  if (const auto known = file_.Find(key)) return *known;
  const double seconds = measure_(use);
  file_.Add(key, seconds);
  return seconds;
}

OpCosts::Measure OpMeasure(DevicePtr device) {
  return [=](const OpUse& use) {
    const auto kernel = device->BuildOp(*use.op, {use.inputs, use.output, use.layout, device->target()});
    std::vector<Tensor> inputs;
    inputs.reserve(use.inputs.size());
    for (const Shape& shape : use.inputs) inputs.push_back(TimingInput(shape, use.layout));
    std::vector<Tensor*> pointers;
    pointers.reserve(inputs.size());
    for (Tensor& input : inputs) pointers.push_back(&input);
    Tensor output(use.output, use.layout);
    return use.op->HasFastKernel() ? TimeKernel(*device, *kernel, pointers, output)
                                   : TimeOnce(*device, *kernel, pointers, output);
  };
}

}  // namespace tilesmith
