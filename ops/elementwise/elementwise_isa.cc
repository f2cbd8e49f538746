#include "ops/elementwise/elementwise_loops.h"
#include "ops/kernels/vector_math.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

template <BinaryKind kOp, typename V>
inline V Combine(V a, V b) {
  if constexpr (kOp == BinaryKind::kAdd) return a + b;
  if constexpr (kOp == BinaryKind::kSub) return a - b;
  if constexpr (kOp == BinaryKind::kMul) return a * b;
  return a / b;
}

template <typename Body>
inline void WithKind(BinaryKind op, const Body& body) {
  switch (op) {
    case BinaryKind::kAdd:
      return body.template operator()<BinaryKind::kAdd>();
    case BinaryKind::kSub:
      return body.template operator()<BinaryKind::kSub>();
    case BinaryKind::kMul:
      return body.template operator()<BinaryKind::kMul>();
    case BinaryKind::kDiv:
      return body.template operator()<BinaryKind::kDiv>();
  }
}

// out = function(in, a, b) lane by lane: across pixels when there is one lane, else across lanes.
template <typename Function>
inline void OverLanes(const LaneLoop& loop, const Function& function) {
  if (loop.lanes == 1) {
    const float a = loop.a[0], b = loop.b[0];
    ForEachVector(loop.pixels, [&]<int kLanes>(int64_t i) {
      Store<kLanes>(loop.out + i, function.template operator()<kLanes>(Load<kLanes>(loop.in + i),
                                                                       Splat<kLanes>(a), Splat<kLanes>(b)));
    });
    return;
  }
  for (int64_t pixel = 0; pixel < loop.pixels; ++pixel) {
    const float* in = loop.in + pixel * loop.lanes;
    float* out = loop.out + pixel * loop.lanes;
    ForEachVector(loop.lanes, [&]<int kLanes>(int64_t i) {
      Store<kLanes>(out + i, function.template operator()<kLanes>(
                                 Load<kLanes>(in + i), Load<kLanes>(loop.a + i), Load<kLanes>(loop.b + i)));
    });
  }
}

}  // namespace

// The square of e^(x/2), which neither is clamped where e^x is a float nor hides that it is none.
void ExpRun(const float* in, float* out, int64_t count) {
  ForEachVector(count, [&]<int kLanes>(int64_t i) {
    const Vector<kLanes> x = Load<kLanes>(in + i), root = Exp<kLanes>(x * 0.5f);
    Store<kLanes>(out + i, x == x ? root * root : x);
  });
}

void ActivateRun(const float* in, float* out, int64_t count, Activation activation) {
  WithActivation(activation.kind, [&]<ActivationKind kKind>() {
    ForEachVector(count, [&]<int kLanes>(int64_t i) {
      Store<kLanes>(out + i,
                    Activate<kKind, kLanes>(Load<kLanes>(in + i), activation.alpha, activation.beta));
    });
  });
}

void ScaleShiftLanes(const LaneLoop& loop, Activation activation) {
  WithActivation(activation.kind, [&]<ActivationKind kKind>() {
    OverLanes(loop, [&]<int kLanes>(Vector<kLanes> x, Vector<kLanes> scale, Vector<kLanes> shift) {
      return Activate<kKind, kLanes>(x * scale + shift, activation.alpha, activation.beta);
    });
  });
}

void PReluLanes(const LaneLoop& loop) {
  OverLanes(loop, []<int kLanes>(Vector<kLanes> x, Vector<kLanes> slope, Vector<kLanes>) {
    return x >= Vector<kLanes>{} ? x : x * slope;
  });
}

void BinaryRun(BinaryKind op, const float* a, const float* b, float* out, int64_t count) {
  WithKind(op, [&]<BinaryKind kOp>() {
    ForEachVector(count, [&]<int kLanes>(int64_t i) {
      Store<kLanes>(out + i, Combine<kOp, Vector<kLanes>>(Load<kLanes>(a + i), Load<kLanes>(b + i)));
    });
  });
}

void GateLanes(BinaryKind op, bool gate_first, const LaneLoop& loop) {
  WithKind(op, [&]<BinaryKind kOp>() {
    if (gate_first) {
      OverLanes(loop, []<int kLanes>(Vector<kLanes> x, Vector<kLanes> gate, Vector<kLanes>) {
        return Combine<kOp, Vector<kLanes>>(gate, x);
      });
    } else {
      OverLanes(loop, []<int kLanes>(Vector<kLanes> x, Vector<kLanes> gate, Vector<kLanes>) {
        return Combine<kOp, Vector<kLanes>>(x, gate);
      });
    }
  });
}

void SumRun(const InputView* inputs, int64_t input_count, int64_t image, int64_t offset, float* out,
            int64_t count) {
  ForEachVector(count, [&]<int kLanes>(int64_t i) {
    Vector<kLanes> sum{};
    for (int64_t k = 0; k < input_count; ++k) {
      sum += Load<kLanes>(inputs[k].image<float>(image) + offset + i);
    }
    Store<kLanes>(out + i, sum);
  });
}

}  // namespace tilesmith::TILESMITH_ISA
