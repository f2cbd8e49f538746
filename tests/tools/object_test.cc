// `tilesmith compile --object`: programs in C of what it writes and libtilesmith_kernels, built by gcc alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tools/cli/npz.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kLibrary = TILESMITH_BUILD_DIR "/tools/api/libtilesmith_kernels.a";

class ObjectTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kLibrary)) GTEST_SKIP() << "built without libtilesmith_kernels";
  }

  static void Succeeds(const ProgramResult& result) { ASSERT_EQ(result.exit_code, 0) << result.err; }

  ProgramResult Gcc(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I",
                                         folder_.path(), "-o", program_});
    return RunProgram(arguments);
  }

  // The network by the object and by `run`, on the same input, give the same bits.
  void ExpectSameBits(const std::vector<std::string>& model, const Shape& input_shape) {
    std::vector<std::string> compile = {"compile", "--object", "-o", object_}, run = {"run", "--runs", "1"};
    compile.insert(compile.end(), model.begin(), model.end());
    run.insert(run.end(), model.begin(), model.end());
    Succeeds(Tilesmith(compile));
    Succeeds(Gcc({TILESMITH_SOURCE_DIR "/tests/tools/object/run_network.c", object_, kLibrary, "-lm"}));
    Tensor image(input_shape);
    FillUniform({image.floats(), static_cast<size_t>(image.size())}, 1);
    const std::string in = folder_.File("in"), out = folder_.File("out"), array = folder_.File("in.npy");
    WriteFile(in, {reinterpret_cast<const char*>(image.raw()), static_cast<size_t>(image.bytes())});
    WriteNpy(array, image);
    Succeeds(RunProgram({program_, in, out}));
    const std::string outputs = folder_.File("outputs.npz");
    run.insert(run.end(), {"--input", "input=" + array, "--output", outputs});
    Succeeds(Tilesmith(run));
    const Tensor wanted = ReadNpz(outputs).at(0).second;
    const std::string got = ReadFile(out);
    ASSERT_EQ(static_cast<int64_t>(got.size()), wanted.bytes());
    EXPECT_EQ(std::memcmp(got.data(), wanted.raw(), got.size()), 0);
  }

  const TemporaryDirectory folder_;
  const std::string object_ = folder_.File("network.o"), program_ = folder_.File("program");
};

TEST_F(ObjectTest, ComputesTheSameBitsOnOneThread) {
  ExpectSameBits({"squeezenet1_1", "--input-shape", "input=1x3x64x64", "--threads", "1"}, {1, 3, 64, 64});
}

TEST_F(ObjectTest, ComputesTheSameBitsOnThreadsOfTheCallers) {
  ExpectSameBits({"squeezenet1_1", "--input-shape", "input=1x3x64x48", "--threads", "2"}, {1, 3, 64, 48});
}

// What the library takes from C's: nothing that allocates.
TEST_F(ObjectTest, TheLibraryShowsAndNeedsLittle) {
  const ProgramResult shown = RunProgram({"nm", "-g", "--defined-only", kLibrary});
  EXPECT_EQ(Lines(shown.out), 5) << shown.out;  // two of them say which member it is
  for (const char* name : {"init", "run", "used"})
    EXPECT_THAT(shown.out, HasSubstr(std::string(" T tilesmith_object_") + name + "\n"));
  const ProgramResult needed = RunProgram({"nm", "-u", kLibrary});
  EXPECT_THAT(needed.out, HasSubstr(" U memcpy\n"));
  for (const char* name : {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "free", "mmap",
                           "munmap", "_Znwm", "_ZdlPv", "__cxa_throw"})
    EXPECT_THAT(needed.out, Not(HasSubstr(std::string(" ") + name + "\n")));
}

TEST_F(ObjectTest, SectionsAreWhatTheyShouldBe) {
  Succeeds(Tilesmith({"compile", "squeezenet1_1", "--object", "-o", object_}));
  const ProgramResult sections = RunProgram({"readelf", "-SW", object_});
  EXPECT_EQ(sections.err, "");
  const auto has = [&](const char* name, const char* flags) {
    EXPECT_THAT(sections.out, testing::ContainsRegex(std::string(name) + " .* 00 +" + flags + " "));
  };
  has(".rodata.network", "A");
  has(".text.network", "AX");
  has(".data.rel.ro.network", "WA");
  EXPECT_THAT(sections.out, HasSubstr(".note.GNU-stack"));
}

TEST_F(ObjectTest, TheHeaderIsOneOfC11AndOfCxx) {
  Succeeds(Tilesmith({"compile", "squeezenet1_1", "--object", "--threads", "2", "-o", object_}));
  const std::string source = folder_.File("source");
  WriteFile(source,
            "#include \"network.h\"\n#include \"network.h\"\n"
            "static const int shape[] = network_INPUT_0_SHAPE;\n"
            "typedef char threads[network_THREADS == 2 ? 1 : -1];\n"
            "typedef char bytes[network_INPUT_0_BYTES == 4 * 3 * 224 * 224 ? 1 : -1];\n"
            "typedef char rank[sizeof(shape) / sizeof(shape[0]) == network_INPUT_0_RANK ? 1 : -1];\n"
            "int run(tilesmith_pool* pool) { return network_run(0, 0, 0, pool); }\n");
  for (const auto& [language, standard] : {std::pair("c", "-std=c11"), std::pair("c++", "-std=c++11")}) {
    Succeeds(RunProgram({"gcc", "-x", language, standard, "-pedantic", "-Wall", "-Werror",
                         "-Wno-unused-local-typedefs", "-fsyntax-only", source}));
  }
}

TEST_F(ObjectTest, ThePagesCommandsBuildTheExample) {
  std::filesystem::create_directory_symlink(TILESMITH_SOURCE_DIR "/tools", folder_.File("tools"));
  std::filesystem::create_directory_symlink(TILESMITH_BUILD_DIR, folder_.File("build"));
  std::istringstream page(ReadFile(TILESMITH_SOURCE_DIR "/tools/api/README.md"));
  int commands = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("gcc ") && line.find(" --object ") == std::string::npos) continue;
    if (line.starts_with("`") || line.find('`') != std::string::npos) continue;
    ++commands;
    Succeeds(RunProgram({"bash", "-c", "PATH=$PWD/build:$PATH; " + line}, {.directory = folder_.path()}));
  }
  EXPECT_EQ(commands, 2);
  const ProgramResult ran = RunProgram({folder_.File("classify")});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("the largest of 1000 is number "));
  const ProgramResult needed = RunProgram({"readelf", "-d", folder_.File("classify")});
  EXPECT_THAT(needed.out, Not(HasSubstr("stdc++")));
  EXPECT_THAT(needed.out, Not(HasSubstr("libgcc_s")));
}

TEST_F(ObjectTest, WhatItCannotDoIsRefusedByName) {
  const auto refused = [&](const std::string& path, std::vector<std::string> more, const char* why) {
    more.insert(more.begin(), {"compile", "squeezenet1_1", "--object", "-o", path});
    ExpectRefusal(more, 2, why);
    EXPECT_FALSE(std::filesystem::exists(path));
  };
  for (const char* name : {"network", "network.tsc", "2nd.o", "squeezenet1.1.o", ".o"})
    refused(folder_.File(name), {}, "an object's file is called NAME.o");
  refused(object_, {"--for-threads", "1", "--for-threads", "2"}, "an object holds one network");
  OnnxModel model;
  model.Input("boxes", {1, 60, 4});
  model.Input("scores", {1, 2, 60});
  model.Ints("most", {30});
  model.Node("NonMaxSuppression", {"boxes", "scores", "most"}, {"kept"});
  model.Output("kept");
  const std::string detector = folder_.File("detector.onnx");
  WriteFile(detector, model.Bytes());
  const ProgramResult result = Tilesmith({"compile", detector, "--object", "-o", object_});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("outputs whose sizes depend on values"));
  WriteFile(folder_.File("network.h"), "#pragma once\n");
  refused(object_, {}, "holds something else than an object's header");
}

}  // namespace
}  // namespace tilesmith
