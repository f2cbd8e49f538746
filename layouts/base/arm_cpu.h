// What an AArch64 CPU says of itself: features in the auxiliary vector, names in /proc/cpuinfo, and which of
// its cores are alike. Apart from how that is read it is the same in every build, for tests.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "layouts/base/target.h"

namespace tilesmith {

struct ArmFeatures {
  uint64_t hwcap = 0, hwcap2 = 0;  // AT_HWCAP and AT_HWCAP2 as Linux defines them (asm/hwcap.h)
  int sve_bytes = 0;               // a vector's, as PR_SVE_GET_VL tells
};

#ifdef __aarch64__
ArmFeatures ReadArmFeatures();
#endif

// A target with these instructions: kSve where there is SVE of at least 16 bytes, else kNeon; of longer
// vectors, and of lengths between powers of two, it uses the largest of 16, 32 and 64 bytes.
Target ArmInstructions(const ArmFeatures& features);

// The ISA's name, with the length of vectors where that does not say it: "sve of 256 bits".
std::string VectorsText(const Target& cpu);

// The names of all kinds of cores in the text of /proc/cpuinfo, "Cortex-A55 + Cortex-X1"; "ARM 0x41:0xd99"
// of one without a name here. Where there are none, or QEMU's, a program emulates the CPU: "emulated", with
// the host's name where the text has it. Times there mean nothing.
std::string ArmModelName(std::istream& cpuinfo);
constexpr const char* kEmulated = "emulated";

// A core and its speed, as cpu_capacity gives it: the fastest of the machine has 1024, all of them where that
// is not known.
struct CoreSpeed {
  int core = 0;
  int64_t capacity = 1024;
};
// The cores that a team with equal shares is fastest on: such that their count times the slowest one's
// capacity is largest, of equal ones the more. Ascending.
std::vector<int> FastestTeam(std::vector<CoreSpeed> cores);

}  // namespace tilesmith
