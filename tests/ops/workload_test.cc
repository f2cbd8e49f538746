#include "ops/conv/workload.h"

#include <gmock/gmock.h>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

std::string Canonical(std::string_view text) { return WorkloadToString(ParseWorkload(text)); }

std::string ErrorOf(std::string_view text) {
  try {
    ParseWorkload(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(Workload, CanonicalFormsAreFixedPoints) {
  for (const char* text : {
           "mb1ic64ih56oc64oh56kh3ph1",
           "mb128ic64ih56oc64oh56kh3ph1+bias+sum+relu",
           "mb1ic3ih224oc64oh112kh7sh2ph3+bias+relu",
           "g32mb1ic32ih112oc32oh112kh3ph1+clip:0:6",
           "mb1ic32ih112oc32oh112kh3ph1+sum+clip:-1e30:1e30",
           "mb2ic5ih7iw9oc3oh4ow9kh3kw1sh2sw1ph1pw0dh0dw1",
           "mb1ic64ih56oc64oh56kh3",  // all padding at the end
           "mb1ic8ih10oc8oh4kh3sh2",  // the last row goes unread
           "mb1ic8ih17iw9oc8oh17ow9kh1kw7ph0pw3+leaky_relu:0.1",
           "mb1ic1ih1oc1oh3kh1ph1",  // padding wider than the kernel
           "mb1ic8ih33oc8oh33kh3ph4dh3+hard_swish",
           "g32mb1ic32ih112oc32oh112kh3ph1+bias+relu>mb1ic32ih112oc64oh112kh1+bias+sum",
           "mb2ic16ih8oc96oh8kh1+clip:0:6>g96mb2ic96ih8oc96oh4kh3sh2ph1",
           "scale_shift+relu>mb1ic64ih56oc128oh56kh1+bias",
           "scale_shift>mb1ic64ih56oc128oh56kh1",
           "hard_sigmoid:0.2:0.5>mb1ic64ih56oc128oh56kh1",
           "mb12m197n197k64",
           "mb1m3n5k7ta1tb1",
           "mb1ic64ih56oc64oh56kh3ph1:u8:i8:u8",
           "g64mb2ic64ih56oc64oh56kh3ph1+bias:i8:u8:f32",
           "mb1ic64ih56oc64oh56kh3ph1+bias+sum:u8:i8:u8",
       }) {
    EXPECT_EQ(Canonical(text), text);
  }
}

TEST(Workload, ProductsOfTwoInputs) {
  EXPECT_EQ(Canonical("k64n197_m5tb1ta0"), "mb1m5n197k64tb1");
  const ConvWorkload w = ParseWorkload("mb12m5n197k64tb1");
  EXPECT_EQ(w.input_shape(), (Shape{12, 1, 5, 64}));
  EXPECT_EQ(w.weights_shape(), (Shape{12, 1, 197, 64}));
  EXPECT_EQ(w.output_shape(), (Shape{12, 1, 5, 197}));
  EXPECT_EQ(w.flops(), 2.0 * 12 * 5 * 197 * 64);
  EXPECT_EQ(ParseWorkload("m5n197k64ta1").input_shape(), (Shape{1, 1, 64, 5}));
  EXPECT_THAT(ErrorOf("mb1m5n4"), HasSubstr("the field k is missing"));
  EXPECT_THAT(ErrorOf("m5n4k3m5"), HasSubstr("the field m is given twice"));
  EXPECT_THAT(ErrorOf("m5n4k3ta2"), HasSubstr("expected a number from 0 to 1 after \"ta\""));
  EXPECT_THAT(ErrorOf("m5n4k3kh3"), HasSubstr("unknown field \"kh\" of a product (known: mb m n k ta tb)"));
  EXPECT_THAT(ErrorOf("m5n4k3+bias"), HasSubstr("of a product"));
  EXPECT_THAT(ErrorOf("m5n4k0"), HasSubstr("ic is 0"));
  EXPECT_THAT(ErrorOf("scale_shift>m5n4k3"), HasSubstr("nothing can be fused in front of a product"));
}

TEST(Workload, TypesOfBytes) {
  const ConvWorkload w = ParseWorkload("ic64ih56oc64kh3ph1+bias:u8:i8:f32");
  EXPECT_EQ(w.bytes, (ByteTypes{DataType::kU8, DataType::kI8, DataType::kF32}));
  EXPECT_EQ(w.output_type(), DataType::kF32);
  EXPECT_FALSE(w == ParseWorkload("ic64ih56oc64kh3ph1+bias"));
  EXPECT_THAT(ErrorOf("ic8ih8oc8kh1:u8:i8"),
              HasSubstr("the outputs are of type \"\" (allowed: u8, i8, f32)"));
  EXPECT_THAT(ErrorOf("ic8ih8oc8kh1:f32:i8:u8"),
              HasSubstr("the inputs are of type \"f32\" (allowed: u8, i8)"));
  EXPECT_THAT(ErrorOf("ic8ih8oc8kh1:u8:i8:u8:u8"), HasSubstr("more than three types"));
  EXPECT_THAT(ErrorOf("ic8ih8oc8kh1+relu:u8:i8:u8"), HasSubstr("activations of bytes are limits"));
  EXPECT_THAT(ErrorOf("ic8ih8oc8kh1+clip:0:6:u8:i8:u8"), HasSubstr("activations of bytes are limits"));
  EXPECT_THAT(ErrorOf("ic8ih8oc8kh1+sum:u8:i8:f32"), HasSubstr("a residual is added to bytes only"));
  EXPECT_THAT(ErrorOf("relu>ic8ih8oc8kh1:u8:i8:u8"), HasSubstr("nothing can be fused in front"));
  EXPECT_THAT(ErrorOf("ic8ih8oc8kh1:u8:i8:u8>ic8ih8oc8kh1"),
              HasSubstr("cannot be fused in front of another"));
}

TEST(Workload, OptionalPartsAreDeduced) {
  EXPECT_EQ(Canonical("ic64ih56oc64kh3ph1"), "mb1ic64ih56oc64oh56kh3ph1");
  EXPECT_EQ(Canonical("ic64iw56oc64kw3pw1"), "mb1ic64ih56oc64oh56kh3ph1");
  EXPECT_EQ(Canonical("g1mb1ic3ih224iw224oc64oh112ow112kh7kw7sh2sw2ph3pw3dh0dw0n\"conv 1+x\"+relu+bias"),
            "mb1ic3ih224oc64oh112kh7sh2ph3+bias+relu");
  EXPECT_EQ(Canonical("mb1_ic8ih10_oc8_kh3sh2"), "mb1ic8ih10oc8oh4kh3sh2");
  EXPECT_EQ(Canonical("ic8ih10iw20oc8kh3ph1"), "mb1ic8ih10iw20oc8oh10ow20kh3ph1");
}

TEST(Workload, FieldsLandWhereTheyBelong) {
  const ConvWorkload w = ParseWorkload("g2mb3ic4ih15iw16oc6oh7ow13kh3kw5sh2sw1ph1pw1dh1dw0+sum+clip:-1:0.5");
  EXPECT_EQ(w.input_shape(), (Shape{3, 4, 15, 16}));
  EXPECT_EQ(w.output_shape(), (Shape{3, 6, 7, 13}));
  EXPECT_EQ(w.weights_shape(), (Shape{6, 2, 3, 5}));
  EXPECT_EQ(w.pad_bottom(), 1);
  EXPECT_EQ(w.pad_right(), 0);
  EXPECT_FALSE(w.post.bias);
  EXPECT_TRUE(w.post.sum);
  EXPECT_EQ(w.post.activation, (Activation{ActivationKind::kClip, -1, 0.5f}));
}

TEST(Workload, WhatIsFusedInFront) {
  const ConvWorkload pair = ParseWorkload("g8ic8ih9oc8kh3sh2ph1+bias>n\"a>b\"ic8ih5oc4kh1+relu");
  ASSERT_EQ(pair.before.size(), 1U);
  EXPECT_TRUE(pair.fused());
  EXPECT_FALSE(pair.main_conv().fused());
  EXPECT_EQ(pair.input_shape(), (Shape{1, 8, 9, 9}));
  EXPECT_EQ(pair.main_input_shape(), (Shape{1, 8, 5, 5}));
  EXPECT_EQ(pair.output_shape(), (Shape{1, 4, 5, 5}));
  EXPECT_EQ(pair.flops(), pair.main_conv().flops() + pair.before[0].flops());
  EXPECT_EQ(pair.before[0], ParseWorkload("g8ic8ih9oc8kh3sh2ph1+bias"));
  EXPECT_EQ(pair.main_conv(), ParseWorkload("ic8ih5oc4kh1+relu"));

  const ConvWorkload pre = ParseWorkload("relu+scale_shift>ic8ih5oc4kh1");
  EXPECT_EQ(WorkloadToString(pre), "scale_shift+relu>mb1ic8ih5oc4oh5kh1");
  EXPECT_TRUE(pre.fused() && pre.pre.scale_shift);
  EXPECT_EQ(pre.pre.activation, Activation{ActivationKind::kRelu});
  EXPECT_EQ(pre.input_shape(), pre.main_input_shape());
  EXPECT_FALSE(pre == pre.main_conv());
}

TEST(Workload, FusedOnesThatMakeNoSense) {
  EXPECT_THAT(ErrorOf("ic8ih5oc8kh1>ic8ih5oc8kh1>ic8ih5oc8kh1"),
              testing::AllOf(HasSubstr("character 26"), HasSubstr("a second \">\"")));
  EXPECT_THAT(ErrorOf("ic8ih5oc8kh1>ic16ih5oc8kh1"),
              testing::AllOf(HasSubstr("gives 1x8x5x5"), HasSubstr("reads 1x16x5x5")));
  EXPECT_THAT(ErrorOf("ic8ih5oc8kh1+sum>ic8ih5oc8kh1"), HasSubstr("residual"));
  EXPECT_THAT(ErrorOf("ic8ih5oc8kh1>"), HasSubstr("field ic is missing"));
  EXPECT_THAT(ErrorOf("ic8ih5kh1>ic8ih5oc8kh1"), HasSubstr("field oc is missing"));
  EXPECT_THAT(ErrorOf(">ic8ih5oc8kh1"), HasSubstr("before \">\""));
  EXPECT_THAT(ErrorOf("scale_shfit>ic8ih5oc8kh1"),
              testing::AllOf(HasSubstr("scale_shfit"), HasSubstr("scale_shift or an activation")));
  EXPECT_THAT(ErrorOf("scale_shift+>ic8ih5oc8kh1"), HasSubstr("character 13"));
  EXPECT_THAT(ErrorOf("scale_shift+scale_shift>ic8ih5oc8kh1"), HasSubstr("a second scale_shift"));
  EXPECT_THAT(ErrorOf("relu+relu>ic8ih5oc8kh1"), HasSubstr("a second activation"));
  EXPECT_THAT(ErrorOf("tanh>ic8ih5oc8kh1"), HasSubstr("tanh cannot be fused"));
}

TEST(Workload, ErrorsNamePositionAndExpectation) {
  EXPECT_THAT(ErrorOf("ic64ih56oc64oh56kh3phh1"),
              testing::AllOf(HasSubstr("\"ic64ih56oc64oh56kh3phh1\""), HasSubstr("character 20"),
                             HasSubstr("unknown field \"phh\""), HasSubstr("known: g mb ic")));
  EXPECT_THAT(ErrorOf("ic64ih"), testing::AllOf(HasSubstr("character 7"), HasSubstr("after \"ih\"")));
  EXPECT_THAT(ErrorOf("ic-3ih5oc1kh1"), HasSubstr("got \"-3ih5oc1\""));
  EXPECT_THAT(ErrorOf("ic3ic4ih5oc1kh1"), HasSubstr("given twice"));
  EXPECT_THAT(ErrorOf("ic3ih5kh1"), HasSubstr("field oc is missing"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("field ic is missing"));
  EXPECT_THAT(ErrorOf("ic3ih5oc1kh1+reul"), testing::AllOf(HasSubstr("reul"), HasSubstr("leaky_relu:ALPHA")));
  EXPECT_THAT(ErrorOf("ic3ih5oc1kh1+"), HasSubstr("after \"+\""));
  EXPECT_THAT(ErrorOf("ic3ih5oc1kh1+bias+bias"), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf("ic3ih5oc1kh1+relu+relu"), HasSubstr("more than one"));
  EXPECT_THAT(ErrorOf("ic3ih5oc1kh1+sigmoid"), HasSubstr("fused"));
  EXPECT_THAT(ErrorOf("ic3ih5oc1kh1n\"x"), HasSubstr("closing quote"));
  EXPECT_THAT(ErrorOf("ic3ih5oc1kh99999999999999999999"), HasSubstr("expected a number"));
}

TEST(Workload, InconsistentSizesAreRefused) {
  EXPECT_THAT(ErrorOf("ic64ih56oc64oh99kh3ph1"), HasSubstr("oh99 fits no padding"));
  EXPECT_THAT(ErrorOf("ic64ih56oc64oh20kh3ph1"), HasSubstr("oh20 fits no padding"));
  EXPECT_THAT(ErrorOf("ic64ih56iw20oc64oh56kh3ph1"), HasSubstr("ow56 fits no padding"));
  EXPECT_THAT(ErrorOf("ic64ih2oc64kh5"), HasSubstr("output is empty"));
  EXPECT_THAT(ErrorOf("g3ic64ih5oc64kh1"), HasSubstr("groups do not divide"));
  EXPECT_THAT(ErrorOf("ic0ih5oc64kh1"), HasSubstr("ic is 0"));
  EXPECT_THAT(ErrorOf("ic4ih5oc64kh1sh0"), HasSubstr("sh is 0"));
  EXPECT_THAT(ErrorOf("mb16777216ic16777216ih5oc64kh1"), HasSubstr("elements"));
}

}  // namespace
}  // namespace tilesmith
