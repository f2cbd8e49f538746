// classify MODEL [PLAN]: runs a network on a grey image and prints its largest output, and where the time
// goes.
#include <tilesmith/tilesmith.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s MODEL [PLAN]\n", argv[0]);
    return 2;
  }
  try {
    const auto model = tilesmith::Model::Load(argv[1], {.plan = argc == 3 ? argv[2] : ""});
    tilesmith::Session session = model.NewSession();

    std::vector<std::vector<float>> tensors;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    const auto add = [&](const tilesmith::TensorInfo& info, float value) {
      if (info.type != "f32") throw std::runtime_error(info.name + " is of " + info.type + ", not of f32");
      return tensors.emplace_back(info.elements, value).data();
    };
    for (const tilesmith::TensorInfo& input : model.inputs()) inputs.push_back(add(input, 0.5f));
    for (const tilesmith::TensorInfo& output : model.outputs()) outputs.push_back(add(output, 0));
    session.Run(inputs, outputs);

    const std::vector<float>& scores = tensors[inputs.size()];
    const auto largest = std::max_element(scores.begin(), scores.end());
    std::printf("%s: the largest of %zu is number %td, %g\n", model.outputs()[0].name.c_str(), scores.size(),
                largest - scores.begin(), *largest);

    std::vector<tilesmith::StepTime> steps = session.Profile(inputs, outputs, 10);
    std::sort(steps.begin(), steps.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
    for (size_t i = 0; i < std::min<size_t>(steps.size(), 5); ++i)
      std::printf("%8.1f us  %-10s %s\n", steps[i].seconds * 1e6, steps[i].kind.c_str(),
                  steps[i].name.c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
