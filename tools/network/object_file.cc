#include "tools/network/object_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/sizes.h"
#include "layouts/base/text_file.h"
#include "layouts/base/thread_team.h"
#include "layouts/tensor.h"
#include "tools/api/object/object.h"

// The program tilesmith has the library itself, which says how much scratch a network takes; what links no
// such library writes no objects.
#pragma weak tilesmith_object_init
#pragma weak tilesmith_object_run
#pragma weak tilesmith_object_used

namespace tilesmith {
namespace {

constexpr int64_t kPage = 4096;
// Programs reach all of what they are linked of within 2 GiB.
constexpr int64_t kMostBytes = int64_t{1} << 30;

// Sections in their order. What is behind kCode is a few bytes each.
enum ObjectSection : uint16_t {
  kNoSection,
  kBeforeCode,  // of the compiled file
  kCode,
  kCalls,   // the functions of the header
  kObject,  // a TilesmithObject
  kCallRelocations,
  kObjectRelocations,
  kSymbols,
  kStrings,
  kSectionNames,
  kNoExecutableStack,
  kSectionCount
};

enum ObjectSymbol : uint32_t {
  kNoSymbol,
  kBeforeCodeSymbol,
  kCodeSymbol,
  kObjectSymbol,
  kInit,
  kRun,
  kLibraryInit,
  kLibraryRun,
  kSymbolCount
};

template <typename T>
std::string_view BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// Strings one behind the other, the first one empty.
class StringTable {
 public:
  uint32_t Add(std::string_view text) {
    const auto at = static_cast<uint32_t>(bytes_.size());
    bytes_.append(text).push_back('\0');
    return at;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

// `init` and `run` jump to the library's functions with one argument more, where the object is:
// (scratch, object) and (inputs, outputs, scratch, pool, object), by the calling convention of System V.
struct Calls {
  std::string code;
  std::vector<Elf64_Rela> relocations;
  size_t run = 0;  // where it begins

  explicit Calls(bool takes_pool) {
    Code("\x48\x8d\x35");  // lea rsi, [rip + object]
    RelativeTo(kObjectSymbol, R_X86_64_PC32);
    Code("\xe9");
    RelativeTo(kLibraryInit, R_X86_64_PLT32);
    code.resize(static_cast<size_t>(RoundUp(std::ssize(code), 16)), '\xcc');
    run = code.size();
    if (!takes_pool) Code("\x31\xc9");  // xor ecx, ecx
    Code("\x4c\x8d\x05");               // lea r8, [rip + object]
    RelativeTo(kObjectSymbol, R_X86_64_PC32);
    Code("\xe9");
    RelativeTo(kLibraryRun, R_X86_64_PLT32);
  }

  void Code(std::string_view bytes) { code += bytes; }
  void RelativeTo(uint32_t symbol, uint32_t type) {
    relocations.push_back({code.size(), ELF64_R_INFO(symbol, type), -4});
    code.append(4, '\0');
  }
};

struct SectionKind {
  uint32_t type = SHT_PROGBITS;
  uint64_t flags = 0;
  uint32_t link = 0, info = 0;
  int64_t alignment = 1;
  uint64_t entry_bytes = 0;
};

// Sections one behind the other, from an offset in the file on, and then their headers.
class Sections {
 public:
  explicit Sections(int64_t offset) : offset_(offset) {}

  // One whose bytes are in front of these, at an offset.
  void Elsewhere(ObjectSection number, const std::string& name, int64_t offset, int64_t bytes,
                 const SectionKind& kind) {
    Elf64_Shdr& header = headers_[number];
    header.sh_name = names_.Add(name);
    header.sh_type = kind.type;
    header.sh_flags = kind.flags;
    header.sh_offset = static_cast<uint64_t>(offset);
    header.sh_size = static_cast<uint64_t>(bytes);
    header.sh_link = kind.link;
    header.sh_info = kind.info;
    header.sh_addralign = static_cast<uint64_t>(kind.alignment);
    header.sh_entsize = kind.entry_bytes;
  }
  void Add(ObjectSection number, const std::string& name, std::string_view bytes, const SectionKind& kind) {
    Align(kind.alignment);
    Elsewhere(number, name, end(), std::ssize(bytes), kind);
    bytes_ += bytes;
  }
  // Where the headers are.
  int64_t Finish() {
    const std::string name = ".shstrtab";
    StringTable names = names_;
    names.Add(name);
    Add(kSectionNames, name, names.bytes(), {.type = SHT_STRTAB, .alignment = 1});
    Align(alignof(Elf64_Shdr));
    const int64_t at = end();
    bytes_ += BytesOf(std::span<const Elf64_Shdr>(headers_));
    return at;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  int64_t end() const { return offset_ + std::ssize(bytes_); }
  void Align(int64_t alignment) {
    bytes_.append(static_cast<size_t>(RoundUp(end(), alignment) - end()), '\0');
  }

  const int64_t offset_;
  std::string bytes_;
  StringTable names_;
  std::vector<Elf64_Shdr> headers_ = std::vector<Elf64_Shdr>(kSectionCount);
};

std::string PageOfHeader(int64_t section_headers) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = static_cast<uint64_t>(section_headers);
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSectionCount;
  header.e_shstrndx = kSectionNames;
  std::string page(BytesOf(std::span<const Elf64_Ehdr>(&header, 1)));
  page.resize(kPage, '\0');
  return page;
}

// A page with the header, the compiled file as it is, and what is small.
int64_t WriteElf(std::span<const std::byte> compiled, uint64_t scratch_bytes, bool takes_pool,
                 const ObjectNames& names) {
  const std::string &name = names.identifier, calls_name = ".text." + name + ".calls",
                    object_name = ".data.rel.ro." + name;
  const Calls calls(takes_pool);
  const TilesmithObject object = {nullptr, nullptr, scratch_bytes};
  const Elf64_Rela places[] = {
      {offsetof(TilesmithObject, before_code), ELF64_R_INFO(kBeforeCodeSymbol, R_X86_64_64), 0},
      {offsetof(TilesmithObject, code), ELF64_R_INFO(kCodeSymbol, R_X86_64_64), 0}};
  StringTable strings;
  const auto section = [](ObjectSection number) -> Elf64_Sym {
    return {0, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), STV_DEFAULT, number, 0, 0};
  };
  const auto function = [&](const std::string& symbol, size_t begin, size_t end) -> Elf64_Sym {
    return {strings.Add(symbol), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, kCalls, begin,
            end - begin};
  };
  const auto library = [&](const std::string& symbol) -> Elf64_Sym {
    return {strings.Add(symbol), ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), STV_DEFAULT, kNoSection, 0, 0};
  };
  const Elf64_Sym symbols[] = {{},
                               section(kBeforeCode),
                               section(kCode),
                               section(kObject),
                               function(name + "_init", 0, calls.run),
                               function(name + "_run", calls.run, calls.code.size()),
                               library("tilesmith_object_init"),
                               library("tilesmith_object_run")};
  static_assert(std::size(symbols) == kSymbolCount);

  const int64_t before = BytesBeforeCode(compiled), size = std::ssize(compiled);
  Sections sections(kPage + size);
  sections.Elsewhere(kBeforeCode, ".rodata." + name, kPage, before, {.flags = SHF_ALLOC, .alignment = kPage});
  sections.Elsewhere(kCode, ".text." + name, kPage + before, size - before,
                     {.flags = SHF_ALLOC | SHF_EXECINSTR, .alignment = 64});
  sections.Add(kCalls, calls_name, calls.code, {.flags = SHF_ALLOC | SHF_EXECINSTR, .alignment = 16});
  sections.Add(kObject, object_name, BytesOf(std::span(&object, 1)),
               {.flags = SHF_ALLOC | SHF_WRITE, .alignment = 8});
  const auto relocations = [&](ObjectSection number, ObjectSection of, const std::string& of_name,
                               std::span<const Elf64_Rela> all) {
    sections.Add(number, ".rela" + of_name, BytesOf(all),
                 {.type = SHT_RELA,
                  .flags = SHF_INFO_LINK,
                  .link = kSymbols,
                  .info = of,
                  .alignment = 8,
                  .entry_bytes = sizeof(Elf64_Rela)});
  };
  relocations(kCallRelocations, kCalls, calls_name, calls.relocations);
  relocations(kObjectRelocations, kObject, object_name, places);
  sections.Add(kSymbols, ".symtab", BytesOf(std::span<const Elf64_Sym>(symbols)),
               {.type = SHT_SYMTAB,
                .link = kStrings,
                .info = kInit,
                .alignment = 8,
                .entry_bytes = sizeof(Elf64_Sym)});
  sections.Add(kStrings, ".strtab", strings.bytes(), {.type = SHT_STRTAB, .alignment = 1});
  sections.Add(kNoExecutableStack, ".note.GNU-stack", "", {});
  const std::string page = PageOfHeader(sections.Finish());

  NewFile file(names.object);
  for (const std::string_view piece :
       {std::string_view(page), BytesOf(compiled), std::string_view(sections.bytes())})
    file.Write(piece);
  file.Finish();
  return kPage + size + std::ssize(sections.bytes());
}

// Code where this process may execute it.
class ExecutableCopy {
 public:
  explicit ExecutableCopy(std::span<const std::byte> code) : bytes_(code.size()) {
    if (code.empty()) return;
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool mapped = memory_ != MAP_FAILED;
    if (mapped) std::ranges::copy(code, data());
    if (!mapped || mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) != 0)
      throw Error(ErrorCode::kEnvironment, "no memory may be executed");
  }
  ~ExecutableCopy() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  ExecutableCopy(const ExecutableCopy&) = delete;
  ExecutableCopy& operator=(const ExecutableCopy&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  const size_t bytes_;
  void* memory_ = nullptr;
};

// What the network takes of scratch: it is prepared, and run on zeros, in scratch that is large enough.
uint64_t ScratchBytesOf(std::span<const std::byte> compiled, const CompiledNetwork& network) {
  const ExecutableCopy code(compiled.subspan(static_cast<size_t>(BytesBeforeCode(compiled))));
  std::vector<AlignedBuffer> tensors;
  const auto pointers = [&](const std::vector<UserTensor>& of) {
    std::vector<void*> addresses;
    for (const UserTensor& tensor : of) {
      const int64_t bytes = PaddedBytes(tensor.shape, tensor.layout);
      addresses.push_back(tensors.emplace_back(static_cast<size_t>(std::max<int64_t>(bytes, 1))).data());
    }
    return addresses;
  };
  const std::vector<void*> inputs = pointers(network.inputs), outputs = pointers(network.outputs);
  const std::vector<const void*> read(inputs.begin(), inputs.end());
  const TilesmithPool pool{nullptr, [](void*, int threads, void (*body)(void*, int), void* context) {
                             RunOnTeam(threads, [&](int thread) { body(context, thread); });
                           }};
  constexpr int64_t kLargest = int64_t{1} << 34;
  for (int64_t more = 4 << 20; more <= kLargest; more *= 4) {
    const TilesmithObject object{compiled.data(), code.data(),
                                 static_cast<uint64_t>(network.memory.bytes + more)};
    const AlignedBuffer scratch(object.scratch_bytes, NewMemory::kAnything);
    if (tilesmith_object_init(scratch.data(), &object) != kTilesmithOk) continue;
    if (tilesmith_object_run(read.data(), outputs.data(), scratch.data(), &pool, &object) != kTilesmithOk)
      continue;
    return tilesmith_object_used(scratch.data());
  }
  throw Error(ErrorCode::kInternal, "the object's network does not run");
}

std::string TensorsText(const std::string& name, std::string_view role,
                        const std::vector<UserTensor>& tensors) {
  std::string text = fmt::format("#define {}_{}S {}\n", name, role, tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const UserTensor& tensor = tensors[i];
    const std::string prefix = fmt::format("#define {}_{}_{}", name, role, i);
    text += fmt::format("{}_NAME {}\n", prefix, nlohmann::json(tensor.name).dump());
    text += fmt::format("{}_TYPE \"{}\"\n", prefix, DataTypeName(tensor.layout.type()));
    text += fmt::format("{}_LAYOUT \"{}\"\n", prefix, tensor.layout.WithType(DataType::kF32).ToString());
    text += fmt::format("{}_RANK {}\n", prefix, tensor.shape.size());
    text += fmt::format("{}_SHAPE {{{}}}\n", prefix, fmt::join(tensor.shape, ", "));
    text += fmt::format("{}_BYTES {}\n", prefix, PaddedBytes(tensor.shape, tensor.layout));
  }
  return text;
}

std::string HeaderText(const CompiledModel& model, uint64_t scratch_bytes, const std::string& name) {
  const CompiledNetwork& network = *model.network;
  const int threads = network.device->threads();
  const Target& target = network.device->target();
  return fmt::format(
      R"(/* tilesmith {version}: an object for x86-64 with {isa}, to be linked with libtilesmith_kernels.a and -lm.
 * All memory is the caller's: scratch, inputs and outputs are aligned to {name}_ALIGNMENT bytes, and no output
 * is another argument. Tensors lie as *_LAYOUT says, padding of inputs zero. Functions return a
 * tilesmith_status. */
#ifndef TILESMITH_OBJECT_{name}_H
#define TILESMITH_OBJECT_{name}_H

#ifndef TILESMITH_OBJECT_TYPES
#define TILESMITH_OBJECT_TYPES
typedef enum {{
  TILESMITH_OK = 0,
  TILESMITH_ARGUMENT = 1,     /* a null pointer, or memory that is not aligned */
  TILESMITH_NOT_PREPARED = 2, /* no scratch that *_init has prepared */
  TILESMITH_INSTRUCTIONS = 3, /* the CPU lacks instructions that the network was compiled for */
  TILESMITH_FAILED = 4        /* an index among the inputs' values is out of range */
}} tilesmith_status;

/* Threads of the caller's: `parallel` calls body(context, thread) for each thread below `threads`, each on a
 * thread of its own, since they wait for each other, and returns when all have. */
typedef struct {{
  void* pool;
  void (*parallel)(void* pool, int threads, void (*body)(void* context, int thread), void* context);
}} tilesmith_pool;
#endif

#define {name}_ALIGNMENT 64
#define {name}_SCRATCH_BYTES {scratch}
#define {name}_THREADS {threads}
{inputs}{outputs}
#ifdef __cplusplus
extern "C" {{
#endif

/* Once, before the first run with a scratch, whatever that holds; nothing has to be released. */
int {name}_init(void* scratch);
/* Inputs and outputs by number. One run at a time with a scratch; several, each with one of its own, may run
 * at the same time. */
int {name}_run(const void* const* inputs, void* const* outputs, void* scratch{pool});

#ifdef __cplusplus
}}
#endif

#endif
)",
      fmt::arg("version", model.origin.version), fmt::arg("isa", IsaName(target.isa)), fmt::arg("name", name),
      fmt::arg("scratch", scratch_bytes), fmt::arg("threads", threads),
      fmt::arg("inputs", TensorsText(name, "INPUT", network.inputs)),
      fmt::arg("outputs", TensorsText(name, "OUTPUT", network.outputs)),
      fmt::arg("pool", threads > 1 ? ", const tilesmith_pool* pool" : ""));
}

}  // namespace

ObjectNames ObjectNamesOf(const std::string& path) {
  const std::filesystem::path object(path);
  ObjectNames names{path, std::filesystem::path(object).replace_extension(".h").string(),
                    object.stem().string()};
  const std::string& name = names.identifier;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool is_identifier = !name.empty() && is_letter(name[0]) && std::ranges::all_of(name, [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
  if (object.extension() == ".o" && is_identifier) return names;
  throw Error(ErrorCode::kUsage, fmt::format("{}: an object's file is called NAME.o, where names in C may "
                                             "begin with NAME",
                                             path));
}

int64_t WriteObject(const CompiledModel& model, const ObjectNames& names) {
  const CompiledNetwork& network = *model.network;
  if (tilesmith_object_init == nullptr) {
    throw Error(ErrorCode::kEnvironment,
                "objects are written by the program tilesmith, where it was built "
                "with libtilesmith_kernels");
  }
  if (network.tail != nullptr) {
    throw Error(ErrorCode::kUsage,
                fmt::format("network \"{}\" has outputs whose sizes depend on values, which take a heap: it "
                            "can be a file, but no object",
                            model.origin.network));
  }
  std::vector<std::byte> bytes;
  WriteCompiled(std::span(&model, 1), [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  if (std::ssize(bytes) > kMostBytes) {
    throw Error(ErrorCode::kUsage, fmt::format("network \"{}\" has {} MiB, an object may have {}",
                                               model.origin.network, bytes.size() >> 20, kMostBytes >> 20));
  }
  AlignedBuffer compiled(bytes.size(), NewMemory::kAnything);
  std::ranges::copy(bytes, static_cast<std::byte*>(compiled.data()));
  bytes = {};
  const std::span file(static_cast<const std::byte*>(compiled.data()), compiled.bytes());
  const uint64_t scratch_bytes = ScratchBytesOf(file, network);
  WriteTextFile(names.header, HeaderText(model, scratch_bytes, names.identifier));
  return WriteElf(file, scratch_bytes, network.device->threads() > 1, names);
}

}  // namespace tilesmith
