// The types of inputs and outputs, through the C++ and the C interface.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/tools/typed_model.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"

namespace tilesmith {
namespace {

TEST(ApiTest, TensorsOfEveryTypeAreBytes) {
  const TemporaryDirectory directory;
  const Model model = Model::Load(WriteTypedModel(directory), {.threads = 1});
  EXPECT_EQ(model.inputs()[0].type, "u8");
  EXPECT_EQ(model.inputs()[0].layout, "NCHW");
  EXPECT_EQ(model.inputs()[0].elements, 12u);
  EXPECT_EQ(model.inputs()[0].bytes, 12u);
  EXPECT_EQ(model.outputs()[0].type, "i32");
  EXPECT_EQ(model.outputs()[0].bytes, 48u);
  EXPECT_EQ(model.outputs()[1].type, "bool");
  Session session = model.NewSession();
  uint8_t x[13];
  int32_t whole[13];
  bool large[14] = {};
  for (int i = 0; i < 13; ++i) x[i] = static_cast<uint8_t>(190 + i);
  session.Run({x + 1}, {whole + 1, large + 1});
  for (int i = 1; i < 13; ++i) {
    EXPECT_EQ(whole[i], 1190 + i);
    EXPECT_EQ(large[i], i == 10);
  }
  EXPECT_FALSE(large[13]);
}

TEST(ApiTest, EndsOfFloat16) {
  const TemporaryDirectory directory;
  const Model model = Model::Load(WriteFloat16Model(directory), {.threads = 1});
  EXPECT_EQ(model.inputs()[0].type, "f16");
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.outputs()[0].type, "f16");
  EXPECT_EQ(model.outputs()[0].bytes, 8u * 4 * 4 * 2);
  Session session = model.NewSession();
  std::vector<F16> x(4 * 8 * 8, F16(1.0f)), y(8 * 4 * 4);
  session.Run({x.data()}, {y.data()});
  const OutputTensor& same = session.Run({{InputTensor{x.data(), {}}}})[0];
  EXPECT_EQ(same.type, "f16");
  EXPECT_EQ(std::memcmp(same.data, y.data(), y.size() * sizeof(F16)), 0);
  EXPECT_NE(float{y[0]}, 0);
}

TEST(CApiTest, SaysTypesAndBytes) {
  const TemporaryDirectory directory;
  const tilesmith_load_options options = {.plan = nullptr,
                                          .threads = 1,
                                          .batch = 0,
                                          .input_shapes = nullptr,
                                          .input_shape_count = 0,
                                          .max_elements = 0,
                                          .max_memory = 0,
                                          .sizes = 0,
                                          .wait = nullptr,
                                          .target = nullptr,
                                          .precision = nullptr,
                                          .strict = 0,
                                          .reproducible = 0};
  tilesmith_model* model = nullptr;
  ASSERT_EQ(tilesmith_load(WriteTypedModel(directory).c_str(), &options, &model), 0)
      << tilesmith_last_error();
  EXPECT_STREQ(tilesmith_input(model, 0).type, "u8");
  EXPECT_STREQ(tilesmith_output(model, 1).type, "bool");
  EXPECT_EQ(tilesmith_output(model, 0).bytes, 48u);
  tilesmith_session* session = nullptr;
  ASSERT_EQ(tilesmith_new_session(model, nullptr, 0, &session), 0) << tilesmith_last_error();
  const uint8_t x[12] = {7, 200};
  int32_t whole[12];
  bool large[12];
  const void* inputs[] = {x};
  void* outputs[] = {whole, large};
  ASSERT_EQ(tilesmith_run(session, inputs, outputs), 0) << tilesmith_last_error();
  EXPECT_EQ(whole[0], 1007);
  EXPECT_TRUE(large[1] && !large[0]);
  tilesmith_free_session(session);
  tilesmith_free_model(model);
}

}  // namespace
}  // namespace tilesmith
