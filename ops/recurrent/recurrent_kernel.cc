#include <algorithm>
#include <array>

#include "ops/dense/matmul_loops.h"
#include "ops/recurrent/recurrent.h"

namespace tilesmith {
namespace {

// Products of a step, of one direction, from which on threads share its units and meet at every step: some 2
// us of one core, where meeting takes 0.2.
constexpr int64_t kProductsWorthMeeting = 1 << 16;
// Stages are counted in int, and a program of many is slow to start.
constexpr int64_t kMostSteps = 1 << 20;

// R is packed by blocks of units, whose gates make at most four vectors, so that a product reads memory in
// its order: of one row all of a block's columns at once, of several rows as many as leave registers for
// these. A GRU whose reset gate is in front of the hidden gate's product takes two passes over a block, the
// other cells one.
class RecurrentKernel : public Kernel {
 public:
  RecurrentKernel(const KernelRequest& request, const RecurrentParams& params)
      : params_(params),
        slots_(params),
        places_(params, request.inputs[0]),
        steps_(places_.steps),
        batch_(places_.batch),
        hidden_(params.hidden),
        passes_(params.cell == CellKind::kGru && !params.reset_behind ? 2 : 1),
        product_(TILESMITH_DISPATCH(request.cpu.isa, AddPanelProduct)) {
    const int lanes = DispatchedVectorFloats(request.cpu);
    const int64_t gates = places_.gates;
    first_gates_ = passes_ == 2 ? 2 : gates;
    const int64_t most = std::max<int64_t>(kMaxTileVectors / first_gates_, 1);
    block_units_ = std::min(most, CeilDiv(hidden_, lanes)) * lanes;
    blocks_ = CeilDiv(hidden_, block_units_);
    lanes_ = lanes;
    state_stride_ = RoundUp(hidden_, kMaxLanes);
    block_floats_ = (Checked(gates) * hidden_ * block_units_).value();
    switch (params.cell) {
      case CellKind::kLstm:
        units_[0] = TILESMITH_DISPATCH(request.cpu.isa, LstmUnits);
        break;
      case CellKind::kGru:
        units_[0] = passes_ == 1 ? TILESMITH_DISPATCH(request.cpu.isa, GruUnits)
                                 : TILESMITH_DISPATCH(request.cpu.isa, GruGates);
        units_[1] = TILESMITH_DISPATCH(request.cpu.isa, GruHidden);
        break;
      case CellKind::kRnn:
        units_[0] = TILESMITH_DISPATCH(request.cpu.isa, RnnUnits);
        break;
    }
    ChooseTasks(request.cpu);
    const bool one_row = CeilDiv(batch_, row_parts_) == 1;
    for (int pass = 0; pass < passes_; ++pass) {
      const int64_t vectors = ColumnsOf(pass) / lanes;
      tile_vectors_[pass] = static_cast<int>(one_row || vectors % 2 == 1 ? vectors : 2);
      tile_rows_[pass] = one_row ? 1 : std::min<int64_t>(MostTileRows(lanes, tile_vectors_[pass]), kMostRows);
    }
    PlaceScratch();
    if (params.weights == nullptr) return;
    const auto bytes = static_cast<size_t>(PackedBytes());
    packed_ = DataPart(request.parts, bytes, [&] {
      AlignedBuffer packed(bytes);
      for (int64_t d = 0; d < places_.directions; ++d) {
        const float* const weights = params.weights->floats() + d * gates * hidden_ * hidden_;
        for (int64_t block = 0; block < blocks_; ++block)
          Pack(weights, block, BlockOf(packed.floats(), d, block));
      }
      return packed;
    });
  }

  int Stages() const override {
    return (prepares_ ? 1 : 0) + (by_step_ ? static_cast<int>(steps_) * passes_ : 1);
  }
  int64_t Tasks(int stage) const override {
    return places_.directions * (IsByBlock(stage) ? blocks_ : row_parts_);
  }
  int64_t ScratchBytes(int) const override { return scratch_bytes_; }

  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    const int64_t parts = IsByBlock(stage) ? blocks_ : row_parts_;
    const int64_t at = prepares_ ? stage - 1 : stage, count = range.end - range.begin;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t task = range.begin + InTurn(i, count, std::max<int64_t>(at, 0) / passes_);
      const int64_t direction = task / parts, part = task % parts;
      if (!IsByBlock(stage)) {
        RunSequence(args, direction, batch_ * part / row_parts_, batch_ * (part + 1) / row_parts_);
      } else if (at < 0) {
        Prepare(args, direction, part);
      } else {
        RunBlock(args, {direction, part, 0, batch_, at / passes_, static_cast<int>(at % passes_)});
        if (stage + 1 == Stages()) Finish(args, direction, UnitsOf(part), 0, batch_);
      }
    }
  }

 private:
  static constexpr int64_t kMostRows = 16, kMaxLanes = 16;

  // A block of units of some rows at a step; `step` counts from where the direction begins.
  struct BlockStep {
    int64_t direction, block, first_row, last_row, step;
    int pass;
  };
  struct UnitRange {
    int64_t first, count;
  };

  // The i-th of `count` blocks, forwards and backwards by turns: where R is larger than a cache, what a step
  // read last is still there when the next one begins.
  static int64_t InTurn(int64_t i, int64_t count, int64_t step) { return step % 2 == 0 ? i : count - 1 - i; }

  bool IsByBlock(int stage) const { return by_step_ || (prepares_ && stage == 0); }

  // Directions are independent, and so are rows of a batch; where there are too few of these for the cores,
  // R's rows are dealt out, which takes a barrier at each step.
  void ChooseTasks(const Target& cpu) {
    const int64_t directions = places_.directions, wanted = CeilDiv(cpu.cores, directions);
    const Checked weights = Checked(places_.gates) * hidden_ * hidden_;
    const bool in_cache = (weights * int64_t{sizeof(float)}).value() <= cpu.l2_bytes / 2;
    const bool enough_rows = batch_ >= wanted && (in_cache || wanted == 1);
    by_step_ = !enough_rows && steps_ > 0 && steps_ <= kMostSteps &&
               (weights * batch_).value() >= kProductsWorthMeeting;
    row_parts_ = by_step_ ? 1 : std::clamp<int64_t>(batch_, 1, wanted);
    prepares_ = by_step_ || params_.weights == nullptr;
  }

  // Two of h, of which a step reads one and writes the other; c, or z; r * h; and R, where it is an input.
  void PlaceScratch() {
    const Checked state = Checked(places_.directions) * batch_ * state_stride_ * int64_t{sizeof(float)};
    Checked bytes = state * int64_t{2};
    const auto place = [&](bool present, Checked size, int64_t& offset) {
      offset = bytes.value();
      if (present) bytes += size;
    };
    place(params_.cell == CellKind::kLstm || passes_ == 2, state, cell_offset_);
    place(passes_ == 2, state, reset_offset_);
    place(params_.weights == nullptr, PackedBytes(), packed_offset_);
    scratch_bytes_ = bytes.value();
  }
  int64_t PackedBytes() const {
    return (Checked(places_.directions) * blocks_ * block_floats_ * int64_t{sizeof(float)}).value();
  }
  template <typename T>
  T* BlockOf(T* packed, int64_t direction, int64_t block) const {
    return packed + (direction * blocks_ + block) * block_floats_;
  }
  UnitRange UnitsOf(int64_t block) const {
    const int64_t first = block * block_units_;
    return {first, std::min(block_units_, hidden_ - first)};
  }

  int64_t GatesOf(int pass) const { return pass == 0 ? first_gates_ : places_.gates - first_gates_; }
  int64_t ColumnsOf(int pass) const { return GatesOf(pass) * block_units_; }

  // `weights`: R of the direction. Behind each other the passes, in these the register tiles, in these the
  // terms.
  void Pack(const float* weights, int64_t block, float* to) const {
    const UnitRange units = UnitsOf(block);
    for (int64_t gate = 0; gate < places_.gates; ++gate) {
      const int pass = gate < first_gates_ ? 0 : 1;
      const int64_t width = tile_vectors_[pass] * lanes_;
      float* const start = to + (pass == 0 ? 0 : ColumnsOf(0) * hidden_);
      for (int64_t unit = 0; unit < block_units_; ++unit) {
        const int64_t column = (pass == 0 ? gate : gate - first_gates_) * block_units_ + unit;
        float* const packed = start + column / width * width * hidden_ + column % width;
        const float* const row = weights + (gate * hidden_ + units.first + unit) * hidden_;
        for (int64_t k = 0; k < hidden_; ++k) packed[k * width] = unit < units.count ? row[k] : 0;
      }
    }
  }

  float* StateAt(const KernelArgs& args, int64_t parity, int64_t direction, int64_t row) const {
    return args.scratch_at<float>(0) +
           ((parity * places_.directions + direction) * batch_ + row) * state_stride_;
  }
  float* CellAt(const KernelArgs& args, int64_t direction, int64_t row) const {
    return args.scratch_at<float>(cell_offset_) + (direction * batch_ + row) * state_stride_;
  }
  float* ResetAt(const KernelArgs& args, int64_t direction, int64_t row) const {
    return args.scratch_at<float>(reset_offset_) + (direction * batch_ + row) * state_stride_;
  }
  const float* InputAt(const KernelArgs& args, int slot, const RecurrentPlaces::Row& row) const {
    return args.inputs[static_cast<size_t>(slot)].image<float>(row.image) + row.offset;
  }
  float* OutputAt(const KernelArgs& args, int64_t step, int64_t row, int64_t direction) const {
    const RecurrentPlaces::Row at = places_.Output(step, row, direction);
    return args.output.image<float>(at.image) + at.offset;
  }
  int64_t LengthOf(const KernelArgs& args, int64_t row) const {
    if (slots_.lengths < 0) return steps_;
    return args.inputs[static_cast<size_t>(slots_.lengths)].image<int32_t>(row)[0];
  }

  void Prepare(const KernelArgs& args, int64_t direction, int64_t block) const {
    if (slots_.weights >= 0) {
      Pack(InputAt(args, slots_.weights, {direction, 0}), block,
           BlockOf(args.scratch_at<float>(packed_offset_), direction, block));
    }
    if (by_step_) Begin(args, direction, UnitsOf(block), 0, batch_);
  }
  // The first states.
  void Begin(const KernelArgs& args, int64_t direction, UnitRange units, int64_t first, int64_t last) const {
    for (int64_t row = first; row < last; ++row) {
      CheckLength(LengthOf(args, row), steps_);
      const auto load = [&](int slot, float* to) {
        if (slot < 0) {
          std::fill_n(to + units.first, units.count, 0.0f);
        } else {
          std::copy_n(InputAt(args, slot, places_.State(row, direction)) + units.first, units.count,
                      to + units.first);
        }
      };
      load(slots_.state, StateAt(args, 0, direction, row));
      if (params_.cell == CellKind::kLstm) load(slots_.cell, CellAt(args, direction, row));
    }
  }
  // The last states.
  void Finish(const KernelArgs& args, int64_t direction, UnitRange units, int64_t first, int64_t last) const {
    for (int64_t row = first; row < last; ++row) {
      const auto store = [&](const float* from, int64_t step) {
        std::copy_n(from + units.first, units.count, OutputAt(args, step, row, direction) + units.first);
      };
      if (params_.last_state) store(StateAt(args, steps_ % 2, direction, row), places_.state_row);
      if (params_.last_cell) store(CellAt(args, direction, row), places_.cell_row);
    }
  }

  void RunSequence(const KernelArgs& args, int64_t direction, int64_t first, int64_t last) const {
    Begin(args, direction, {0, hidden_}, first, last);
    for (int64_t step = 0; step < steps_; ++step) {
      for (int pass = 0; pass < passes_; ++pass) {
        for (int64_t i = 0; i < blocks_; ++i)
          RunBlock(args, {direction, InTurn(i, blocks_, step), first, last, step, pass});
      }
    }
    Finish(args, direction, {0, hidden_}, first, last);
  }

  void RunBlock(const KernelArgs& args, const BlockStep& at) const {
    const int64_t columns = ColumnsOf(at.pass), all = at.last_row - at.first_row;
    const float* const packed =
        BlockOf(params_.weights != nullptr ? packed_.floats() : args.scratch_at<float>(packed_offset_),
                at.direction, at.block) +
        (at.pass == 0 ? 0 : ColumnsOf(0) * hidden_);
    alignas(64) std::array<float, kMostRows * kMaxTileVectors * kMaxLanes> sums;
    const int64_t tiles = CeilDiv(all, tile_rows_[at.pass]);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t first = at.first_row + all * tile / tiles, last = at.first_row + all * (tile + 1) / tiles;
      const float* const left =
          at.pass == 0 ? StateAt(args, at.step % 2, at.direction, first) : ResetAt(args, at.direction, first);
      product_({.a = left,
                .a_row = state_stride_,
                .a_term = 1,
                .b = packed,
                .tiled = true,
                .rows = last - first,
                .columns = columns,
                .terms = hidden_,
                .sums = sums.data(),
                .sums_row = columns,
                .fresh = true,
                .tile_rows = static_cast<int>(last - first),
                .tile_vectors = tile_vectors_[at.pass]});
      for (int64_t row = first; row < last; ++row)
        Update(args, at, row, sums.data() + (row - first) * columns);
    }
  }

  // One row of a block, of whose gates `sums` are the recurrent products.
  void Update(const KernelArgs& args, const BlockStep& at, int64_t row, const float* sums) const {
    const int64_t length = LengthOf(args, row), d = at.direction;
    const UnitRange units = UnitsOf(at.block);
    const bool is_last_pass = at.pass + 1 == passes_;
    const float* const before = StateAt(args, at.step % 2, d, row) + units.first;
    float* const after = StateAt(args, (at.step + 1) % 2, d, row) + units.first;
    if (at.step >= length) {
      if (!is_last_pass) return;
      std::copy_n(before, units.count, after);
      if (params_.all_states) std::fill_n(OutputAt(args, at.step, row, d) + units.first, units.count, 0.0f);
      return;
    }
    const int64_t step = params_.reversed[static_cast<size_t>(d)] ? length - 1 - at.step : at.step;
    const auto parameters = [&](int slot) {
      return slot < 0 ? nullptr : InputAt(args, slot, {d, units.first});
    };
    const float* const inputs = InputAt(args, 0, places_.Input(step, row, d)) + units.first;
    const bool has_cell = params_.cell == CellKind::kLstm || passes_ == 2;
    units_[at.pass](
        {.inputs = inputs + (at.pass == 0 ? 0 : first_gates_ * hidden_),
         .gate_step = hidden_,
         .sums = sums,
         .sums_step = block_units_,
         .before = before,
         .after = is_last_pass ? after : ResetAt(args, d, row) + units.first,
         .cell = has_cell ? CellAt(args, d, row) + units.first : nullptr,
         .peepholes = parameters(slots_.peepholes),
         .bias = parameters(slots_.bias),
         .output = params_.all_states && is_last_pass ? OutputAt(args, step, row, d) + units.first : nullptr,
         .units = units.count},
        params_.functions[static_cast<size_t>(d)]);
  }

  using UnitsFunction = void (*)(const CellUnits&, const CellFunctions&);

  const RecurrentParams params_;
  const RecurrentSlots slots_;
  const RecurrentPlaces places_;
  const int64_t steps_, batch_, hidden_;
  const int passes_;
  void (*const product_)(const PanelProduct&);
  std::array<UnitsFunction, 2> units_ = {};  // by pass
  int64_t first_gates_ = 0;                  // of the first pass
  int64_t block_units_ = 0, blocks_ = 0, block_floats_ = 0, lanes_ = 0, state_stride_ = 0;
  std::array<int, 2> tile_vectors_ = {};  // by pass, and the rows of these
  std::array<int64_t, 2> tile_rows_ = {};
  bool by_step_ =
      false;  // a stage for each step and pass, whose tasks are blocks; else one, of whole sequences
  bool prepares_ = false;  // a stage in front of them
  int64_t row_parts_ = 1;
  int64_t cell_offset_ = 0, reset_offset_ = 0, packed_offset_ = 0, scratch_bytes_ = 0;
  SharedBuffer packed_;
};

}  // namespace

std::unique_ptr<Kernel> MakeRecurrentKernel(const KernelRequest& request, const RecurrentParams& params) {
  return std::make_unique<RecurrentKernel>(request, params);
}

}  // namespace tilesmith
