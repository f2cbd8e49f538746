// Generated code for a strip of positions (templates/amx/strips.h): its products, and between them what
// becomes of the sums of the strip before, which neither waits for products nor is waited for.
#pragma once

#include <span>
#include <vector>

#include "templates/amx/strips.h"
#include "templates/code/generated_code.h"
#include "templates/code/vector_code.h"

namespace tilesmith::amx {

struct StripArgs {
  const std::byte* input = nullptr;       // the window of the strip's first position
  const std::byte* next_input = nullptr;  // of the next strip's, where windows are fetched ahead
  int64_t lower_input = 0;                // bytes from there to the second tile's
  const std::byte* weights = nullptr;     // of the block of channels
  const std::byte* bias = nullptr;        // of the type of sums
  std::byte* sums = nullptr;              // [position][lane], float or int32
  std::byte* lower_sums = nullptr;        // of the second tile
  // Pixels to store, whose sums another strip has made.
  const PixelPlace* places = nullptr;
  int64_t pixels = 0;
  const std::byte* stored_sums = nullptr;
  const float* stored_multipliers = nullptr;  // [lane] of their block, if the template has any
  std::byte* output = nullptr;                // the block's first channel of the tile's first pixel
  const std::byte* residual = nullptr;
};

// What a template adds: how tiles are multiplied, and how pixels become of sums. Its constructor ends with
// EmitAll.
class StripCode : public VectorCode {
 public:
  // Of StripFunctions, in their order.
  const std::vector<size_t>& starts() const { return starts_; }

 protected:
  // The vectors of a block that the output has room for.
  struct Vectors {
    int64_t channels = 0;          // of them all
    std::vector<int> real;         // lanes of each
    std::vector<int64_t> offsets;  // bytes, of each from the first
    // Two whose elements follow each other, but for lanes behind the last channel.
    bool adjacent = false;
  };

  // max_pixels: what is stored between steps at most.
  StripCode(const Schedule& schedule, const Target& cpu, int max_pixels);
  void EmitAll();

  virtual void EmitProduct(const Xbyak::Tmm& sums, const Xbyak::Tmm& windows, const Xbyak::Tmm& weights) = 0;
  // Once, before pixels: constants into registers, masks. May use kAddress and kOther.
  virtual void EmitConstantsOf(const Vectors& vectors) = 0;
  // Stores the next `count` pixels: the first is at kPlaces. May use kAddress and kOther.
  virtual void EmitPixels(const Vectors& vectors, int count) = 0;

  const Schedule& schedule() const { return schedule_; }
  // Where, from kPlaces, a place's number is.
  static int PlaceOffset(int pixel, size_t member) {
    return x86::Offset(static_cast<int64_t>(pixel * sizeof(PixelPlace) + member));
  }

  // General registers by purpose, of what pixels use. The only argument arrives in rdi.
  static const Xbyak::Reg64 kArgs, kPlaces, kStoredSums, kOutput, kResidual, kAddress, kOther;

 private:
  Vectors VectorsOf(int64_t channels) const;
  void Emit(const Vectors& vectors, int tiles);
  void EmitStart(int tiles, int products);
  void EmitSteps(const Vectors& vectors, int tiles, int products);
  void EmitPrefetch(int tiles);
  void EmitEnd(const Vectors& vectors, int tiles, int products);
  // Stores `count` pixels and goes on behind them.
  void EmitAdvance(const Vectors& vectors, int count);

  const Schedule schedule_;
  const WindowSteps steps_;
  const int max_pixels_;
  std::vector<size_t> starts_;
  Xbyak::Label step_offsets_;
};

// What was emitted, or before.
class StripFunctions {
 public:
  using Function = void (*)(const StripArgs*);

  StripFunctions() = default;
  // make() gives a StripCode of the schedule in a unique_ptr.
  template <typename Make>
  StripFunctions(const Schedule& schedule, KernelParts* parts, const Make& make)
      : channels_(BlockChannels(schedule.plan)), code_(NextCode(parts, [&](std::vector<size_t>& starts) {
          auto code = make();
          starts = code->starts();
          return code;
        })) {}

  // Multiplies strips of one or two tiles of positions, or none, and stores pixels, both of blocks of which
  // so many channels are real, 1 to the lanes of a block: lanes beyond are zeros where the layout has room
  // for them.
  Function Find(int64_t channels, int64_t tiles) const;
  std::span<const uint8_t> bytes() const { return code_.bytes(); }

  static constexpr int kTileCounts = 3;  // none, one or two
  // How many channels blocks have, ascending.
  static std::vector<int64_t> BlockChannels(const WindowPlan& plan);

 private:
  std::vector<int64_t> channels_;
  GeneratedCode code_;
};

}  // namespace tilesmith::amx
