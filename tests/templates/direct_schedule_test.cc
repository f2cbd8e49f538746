#include <gtest/gtest.h>

#include <random>

#include "templates/direct/config.h"
#include "templates/direct/packing.h"
#include "templates/direct/schedule.h"

namespace tilesmith::direct {
namespace {

ConvWorkload SquareConv(int64_t channels, int64_t size, int64_t outputs, int64_t kernel) {
  ConvWorkload w;
  w.ic = channels;
  w.ih = w.iw = size;
  w.oc = outputs;
  w.kh = w.kw = kernel;
  w.ph = w.pw = kernel / 2;
  w.oh = w.ow = size;
  return w;
}

Target CpuWith(Isa isa) {
  Target cpu;
  cpu.isa = isa;
  return cpu;
}

TEST(RegisterPlan, KnowsTheWidestTiles) {
  EXPECT_TRUE(PlanRegisters(2, 14, Broadcast::kRegister, 32).fits);
  EXPECT_TRUE(PlanRegisters(4, 7, Broadcast::kMixed, 32).fits);
  EXPECT_FALSE(PlanRegisters(4, 7, Broadcast::kRegister, 32).fits);
  EXPECT_TRUE(PlanRegisters(4, 3, Broadcast::kMixed, 16).fits);
  EXPECT_FALSE(PlanRegisters(4, 3, Broadcast::kRegister, 16).fits);
  EXPECT_TRUE(PlanRegisters(1, 30, Broadcast::kEmbedded, 32).fits);
}

TEST(RegisterPlan, RolesDoNotOverlap) {
  for (int registers : {16, 32}) {
    for (int vectors = 1; vectors <= 6; ++vectors) {
      for (int positions = 1; positions <= 30; ++positions) {
        for (Broadcast broadcast : {Broadcast::kEmbedded, Broadcast::kRegister, Broadcast::kMixed}) {
          const RegisterPlan plan = PlanRegisters(vectors, positions, broadcast, registers);
          if (!plan.fits) continue;
          EXPECT_LE(plan.first_broadcast + plan.broadcasts, plan.first_weight);
          EXPECT_EQ(plan.first_weight + plan.weights, registers);
          EXPECT_LE(plan.first_broadcast + kEpilogueScratch, registers);
        }
      }
    }
  }
}

TEST(DirectSchedule, TilesCoverTheRowOnce) {
  ConvWorkload w = SquareConv(16, 1, 16, 3);
  for (int64_t width = 1; width <= 40; ++width) {
    for (int64_t tile = 1; tile <= width; ++tile) {
      for (bool balance : {false, true}) {
        w.iw = w.ow = width;
        int next = 0;
        for (const TileRun& run : CutRow(w, {width, width, tile, balance})) {
          EXPECT_EQ(run.first, next);
          EXPECT_LE(run.width, tile);
          EXPECT_TRUE(run.count == 1 || !run.edge);
          next += run.width * run.count;
        }
        EXPECT_EQ(next, width) << "tile " << tile << " balance " << balance;
      }
    }
  }
}

TEST(DirectSchedule, PassesCoverTheChannelsOnce) {
  for (int64_t channels : {1, 3, 15, 16, 17, 100, 386}) {
    for (int64_t block : {0, 1, 8, 16, 32, 64}) {
      for (int64_t per_pass : {0, 16, 64, 128}) {
        DirectConfig config;
        config.ic_block = block;
        config.ic_pass = per_pass;
        const Schedule g = MakeSchedule(SquareConv(channels, 7, 16, 3), config, 16);
        int64_t next = 0;
        for (const Pass& pass : g.passes) {
          EXPECT_EQ(pass.first_channel, next);
          EXPECT_LT(pass.tail_channels, pass.block_channels);
          next += pass.channels();
        }
        EXPECT_EQ(next, channels) << "block " << block << " pass " << per_pass;
      }
    }
  }
}

TEST(DirectSchedule, ChunksCoverThePaddedOutputOnce) {
  for (int64_t outputs : {1, 16, 17, 100, 386}) {
    for (int64_t block : {16, 32, 64}) {
      for (int64_t vectors : {1, 2, 3, 4}) {
        DirectConfig config;
        config.oc_block = block;
        config.oc_vectors = vectors;
        const Schedule g = MakeSchedule(SquareConv(16, 7, outputs, 3), config, 16);
        int64_t next = 0;
        for (const Chunk& chunk : g.chunks) {
          EXPECT_EQ(chunk.first_channel, next);
          EXPECT_LE(chunk.vectors, vectors);
          next += (chunk.vectors + chunk.zero_vectors) * 16;
        }
        EXPECT_EQ(next, g.out.PaddedChannels(outputs)) << "oc " << outputs << " block " << block;
      }
    }
  }
}

TEST(DirectSchedule, KernelRowsAreThoseInsideTheInput) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const auto below = [&](int n) { return static_cast<int64_t>(random() % n); };
    ConvWorkload w = SquareConv(16, 1 + below(12), 16, 1 + below(5));
    w.ph = below(6);
    w.sh = 1 + below(3);
    w.dh = below(3);
    const Schedule g = MakeSchedule(w, DirectConfig{}, 16);
    const int64_t row = below(14);
    std::vector<int64_t> inside;
    for (int64_t k = 0; k < w.kh; ++k) {
      const int64_t y = row * w.sh - w.ph + k * (w.dh + 1);
      if (y >= 0 && y < w.ih) inside.push_back(k);
    }
    int64_t first = 0, last = 0;
    g.KernelRows(row, &first, &last);
    ASSERT_EQ(last - first, static_cast<int64_t>(inside.size())) << "case " << i;
    if (!inside.empty()) {
      ASSERT_EQ(first, inside.front()) << "case " << i;
    }
  }
}

TEST(Packing, OddChannelsCostOnlyTheirPadding) {
  DirectConfig config;
  config.oc_vectors = 4;
  const Schedule even = MakeSchedule(SquareConv(192, 13, 384, 3), config, 16);
  const Schedule odd = MakeSchedule(SquareConv(192, 13, 386, 3), config, 16);
  const auto floats = [](const Schedule& g) {
    int64_t sum = 0;
    for (const Chunk& chunk : g.chunks) {
      sum += StepWeights(g, chunk) * g.workload.ic;
    }
    return sum;
  };
  EXPECT_EQ(floats(even), 384 * 192 * 9);
  EXPECT_EQ(floats(odd), 400 * 192 * 9);
}

TEST(DirectSpace, DefaultsAreValidAndCodeStaysSmall) {
  std::mt19937 random(11);
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    const Target cpu = CpuWith(isa);
    for (int i = 0; i < 300; ++i) {
      const int64_t kernel = std::vector<int64_t>{1, 3, 5, 7}[random() % 4];
      const ConvWorkload w = SquareConv(1 + random() % 300, 1 + random() % 60, 1 + random() % 300, kernel);
      const ConfigSpace space = DirectTemplate().Space(w, cpu);
      EXPECT_EQ(space.WhyInvalid(DirectTemplate().Default(w, cpu)), "") << WorkloadToString(w);
    }
  }
}

// A tile of one vector asks for a load with every FMA, and one of two positions for a weight vector with
// every other.
TEST(DirectSpace, DefaultsFeedTheFmas) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    Target cpu;
    cpu.isa = isa;
    cpu.cores = 2;
    cpu.l2_bytes = 512 << 10;
    for (const char* text :
         {"ic128ih56oc128oh56kh3ph1", "ic512ih7oc512oh7kh3ph1", "ic256ih56oc128oh56kh1",
          "ic2048ih7oc1024oh7kh1", "ic256ih56oc256oh28kh3sh2ph1", "ic3ih224oc64oh112kh7sh2ph3",
          "ic768ih1iw50oc3072oh1ow50kh1", "g8ic128ih28oc128oh28kh3ph1"}) {
      const ConvWorkload w = ParseWorkload(text);
      const DirectConfig c = ReadConfig(DirectTemplate().Default(w, cpu), cpu);
      const int64_t vectors = std::min(c.oc_vectors, CeilDiv(w.oc / w.g, cpu.vector_floats()));
      EXPECT_GE(c.width_tile, 4) << text;
      EXPECT_GE(vectors * c.width_tile, 10) << text;
      if (isa == Isa::kAvx2) {
        EXPECT_GE(vectors, 2) << text;
      }
    }
  }
}

TEST(DirectSpace, RefusesWithReasons) {
  const Target cpu = CpuWith(Isa::kAvx512);
  ConvWorkload depthwise = SquareConv(64, 14, 64, 3);
  depthwise.g = 64;
  const Support support = DirectTemplate().Supports(depthwise, cpu);
  EXPECT_FALSE(support.ok);
  EXPECT_NE(support.reason.find("groups of 1 output channels"), std::string::npos) << support.reason;
  EXPECT_FALSE(DirectTemplate().Supports(SquareConv(16, 14, 16, 3), CpuWith(Isa::kPortable)).ok);
}

}  // namespace
}  // namespace tilesmith::direct
