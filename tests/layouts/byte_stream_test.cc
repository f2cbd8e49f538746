#include "layouts/byte_stream.h"

#include <gtest/gtest.h>

namespace tilesmith {
namespace {

template <typename... Types>
std::vector<std::byte> BytesOf(const Types&... values) {
  DataWriter data, code;
  ByteWriter writer(&data, &code);
  writer.WriteAll(values...);
  return writer.bytes();
}

// Files of x86 hold nothing of AArch64, as before there was any.
TEST(ByteStream, ATargetIsWhatItsArchitectureHas) {
  Target x86, arm;
  x86.model = arm.model = "some CPU";
  x86.isa = Isa::kAvx512;
  arm.isa = Isa::kSve;
  x86.vnni = x86.bf16 = arm.bf16 = arm.dot = arm.i8mm = true;
  arm.sve_bytes = 32;
  const auto common = [](const Target& t) {
    return BytesOf(t.model, t.isa, t.vnni, t.bf16, t.amx, t.cores, t.l1d_bytes, t.l2_bytes, t.l3_bytes,
                   t.version, t.device, t.compute, t.tf32, t.reproducible);
  };
  EXPECT_EQ(BytesOf(x86), common(x86));
  EXPECT_EQ(BytesOf(arm).size(), common(arm).size() + sizeof(int32_t) + 2);
  for (const Target& target : {x86, arm, Target{}}) {
    const std::vector<std::byte> bytes = BytesOf(target);
    ByteReader reader(bytes, {}, {}, nullptr);
    EXPECT_EQ(reader.Read<Target>(), target);
    reader.ExpectEnd();
  }
}

}  // namespace
}  // namespace tilesmith
