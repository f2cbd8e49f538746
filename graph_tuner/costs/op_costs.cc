#include "graph_tuner/costs/op_costs.h"

#include "graph_tuner/costs/costs_timing.h"

namespace tilesmith {

std::string OpUseText(const OpUse& use) {
  std::string text(use.op->Signature());
  for (const Shape& shape : use.inputs) text += " " + ShapeToString(shape);
  return text + " -> " + ShapeToString(use.output);
}

double OpCosts::Seconds(const OpUse& use) {
  std::map<Use, double>& uses = known_[use.op];
  const Use key = {use.inputs, use.output, use.layout, use.input_types, use.output_type};
  if (const auto known = uses.find(key); known != uses.end()) return known->second;
  return uses[key] = FromFile(use);
}

double OpCosts::FromFile(const OpUse& use) {
  // Figures without "owner" are older ones, of tensors that other threads have written.
  const CostKey key{
      {"kind", "op"}, {"op", OpUseText(use)}, {"layout", use.layout.ToString()}, {"owner", "reader"}};
  if (const auto known = file_.Find(key)) return *known;
  const double seconds = measure_(use);
  file_.Add(key, seconds);
  return seconds;
}

OpCosts::Measure OpMeasure(DevicePtr device) {
  return [=](const OpUse& use) {
    const auto kernel = device->BuildOp(
        *use.op,
        {use.inputs, use.output, use.layout.WithType(use.output_type), device->target(), use.input_types});
    std::vector<Tensor> inputs;
    inputs.reserve(use.inputs.size());
    for (size_t i = 0; i < use.inputs.size(); ++i) {
      const DataType type = use.input_types.empty() ? DataType::kF32 : use.input_types[i];
      inputs.push_back(TimingInput(use.inputs[i], use.layout.WithType(type)));
    }
    std::vector<Tensor*> pointers;
    pointers.reserve(inputs.size());
    for (Tensor& input : inputs) pointers.push_back(&input);
    Tensor output(use.output, use.layout.WithType(use.output_type));
    return use.op->HasFastKernel() ? TimeKernel(*device, *kernel, pointers, output)
                                   : TimeOnce(*device, *kernel, pointers, output);
  };
}

}  // namespace tilesmith
