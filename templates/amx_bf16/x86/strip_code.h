// Generated code for a strip of positions (ops/conv/window_strips.h): its products, and between them what
// becomes of the sums of the strip before, which neither waits for products nor is waited for.
#pragma once

#include <map>
#include <span>
#include <tuple>

#include "templates/amx_bf16/schedule.h"
#include "templates/x86/vector_code.h"

namespace tilesmith::amx_bf16 {

// Where the sums of an output pixel are, and where they go: bytes from the strip's sums, and from the output
// of the first pixel of the tile.
struct PixelPlace {
  int32_t sums = 0, output = 0;
};

struct StripArgs {
  const std::byte* input = nullptr;       // the window of the strip's first position
  const std::byte* next_input = nullptr;  // of the next strip's, where windows are fetched ahead
  int64_t lower_input = 0;                // bytes from there to the second tile's
  const std::byte* weights = nullptr;     // of the block of channels
  const float* bias = nullptr;
  float* sums = nullptr;        // [position][lane]
  float* lower_sums = nullptr;  // of the second tile
  // Pixels to store, whose sums another strip has made.
  const PixelPlace* places = nullptr;
  int64_t pixels = 0;
  const float* stored_sums = nullptr;
  std::byte* output = nullptr;  // the block's first channel of the tile's first pixel
  const std::byte* residual = nullptr;
};

// How windows are read, the same for all strips of a kernel.
struct WindowSteps {
  std::vector<int32_t> offsets;  // bytes from a position to each step of its window
  int64_t position_bytes = 0;
};

class StripCode : public x86::VectorCode {
 public:
  using Function = void (*)(const StripArgs*);

  // Both must outlive it.
  StripCode(const Schedule& schedule, const WindowSteps& steps, const Target& cpu);

  // Multiplies strips of one or two tiles of positions, or none, and stores pixels, both of blocks of which
  // so many channels are real, 1 to the lanes of a block: lanes beyond are zeros where the layout has room
  // for them.
  Function Find(int64_t channels, int64_t tiles) const;
  std::span<const uint8_t> Code() const { return {getCode(), getSize()}; }

 private:
  // The vectors of a block that the output has room for.
  struct Vectors {
    std::vector<int> real;         // lanes of each
    std::vector<int64_t> offsets;  // bytes, of each from the first
    bool together = false;         // two of bf16 are stored as one
  };
  Vectors VectorsOf(int64_t channels) const;
  void Emit(const Vectors& vectors, int64_t channels, int tiles);
  void EmitSteps(const Vectors& vectors, int tiles, int products);
  void EmitPixels(const Vectors& vectors, int count);
  void EmitPrefetch(int tiles);

  const Schedule& schedule_;
  const WindowSteps& steps_;
  std::map<std::pair<int64_t, int64_t>, size_t> starts_;  // by channels and tiles
};

}  // namespace tilesmith::amx_bf16
