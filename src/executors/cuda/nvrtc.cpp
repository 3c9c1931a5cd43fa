#include "executors/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>
#include <sys/stat.h>

#include <algorithm>
#include <future>
#include <optional>
#include <stdexcept>
#include <utility>

#include "executors/cuda/device_sources.h"
#include "executors/cuda/dynamic_library.h"
#include "executors/cuda/linker.h"
#include "executors/cuda/once_per_key.h"
#include "graphrun/error.h"

namespace graphrun::cuda {
namespace {

struct NvrtcFunctions {
  DynamicLibrary library{fmt::format("libnvrtc.so.{}", CUDART_VERSION / 1000),
                         "the kernels of this model are compiled by", "; --no-fuse does without it"};
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define X(name) decltype(&nvrtc##name) name = library.find<decltype(name)>("nvrtc" #name);
  // clang-format off
  X(CreateProgram) X(DestroyProgram) X(CompileProgram) X(GetProgramLogSize) X(GetProgramLog) X(GetCUBINSize)
  X(GetCUBIN) X(Version)
  // clang-format on
#undef X
};
const NvrtcFunctions& nvrtc() {
  static const NvrtcFunctions* const loaded = new NvrtcFunctions;
  return *loaded;
}

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(ErrorKind::device, "cuda.call", fmt::format("load: {} failed: {}", call, cudaGetErrorString(status)));
}

ToolVersion version() {
  ToolVersion version;
  if (nvrtc().Version(&version.major, &version.minor) != NVRTC_SUCCESS)
    throw std::logic_error("NVRTC does not report its version");
  return version;
}

// Disables NVRTC's own cache (since 12.9): nothing guarantees a log for cached code.
std::vector<std::string> options_for(const std::string& architecture) {
  std::vector<std::string> options{"--gpu-architecture=" + architecture, "--std=c++17", "--fmad=false",
                                   "--device-as-default-execution-space", "--ptxas-options=-v"};
  const auto [major, minor] = version();
  if (major > 12 || (major == 12 && minor >= 9)) options.emplace_back("--no-cache");
  return options;
}

// Whether to compile in pieces: requires a linker at least as new as the compiler.
bool in_pieces(const KernelSource& source) {
  if (source.pieces.empty()) return false;
  const ToolVersion linker = linker_version();
  const auto [major, minor] = version();
  return linker.major == major && linker.minor >= minor;
}

// Everything that the code depends on. NVRTC reports only a version such as "13.0", so size and time of its file
// represent the rest.
std::string key_of(const KernelSource& source, const std::vector<std::string>& options) {
  const auto [major, minor] = version();
  std::string key = fmt::format("NVRTC {}.{}", major, minor);
  Dl_info library;
  struct stat file;
  if (dladdr(reinterpret_cast<const void*>(nvrtc().CompileProgram), &library) != 0 &&
      stat(library.dli_fname, &file) == 0) {
    key += fmt::format(" {} {}.{:09}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  }
  for (const std::string& option : options) key += " " + option;
  for (const DeviceSource& header : kDeviceSources) {
    const std::string_view text = header.text;
    key += fmt::format("\n{} {}\n{}", header.name, text.size(), text);
  }
  if (in_pieces(source))
    key += fmt::format("\nin pieces, nvJitLink {}.{}", linker_version().major, linker_version().minor);
  return key + fmt::format("\nkernels.cu {}\n{}", source.text.size(), source.text);
}

CompiledCode compile(const std::string& source, const std::string& architecture,
                     const std::vector<std::string>& options) {
  const NvrtcFunctions& f = nvrtc();
  nvrtcProgram program = nullptr;
  std::vector<const char*> texts, names, words;
  for (const DeviceSource& header : kDeviceSources) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  for (const std::string& option : options) words.push_back(option.c_str());
  if (f.CreateProgram(&program, source.c_str(), "kernels.cu", static_cast<int>(names.size()), texts.data(),
                      names.data()) != NVRTC_SUCCESS)
    throw std::logic_error("NVRTC takes no program");
  const nvrtcResult status = f.CompileProgram(program, static_cast<int>(words.size()), words.data());
  std::size_t size = 0;
  CompiledCode code;
  if (f.GetProgramLogSize(program, &size) == NVRTC_SUCCESS) {
    code.log.resize(size);
    f.GetProgramLog(program, code.log.data());
  }
  if (status == NVRTC_SUCCESS && f.GetCUBINSize(program, &size) == NVRTC_SUCCESS) {
    code.image.resize(size);
    f.GetCUBIN(program, code.image.data());
  }
  f.DestroyProgram(&program);
  if (status == NVRTC_ERROR_INVALID_OPTION) {  // only the architecture depends on the machine
    throw Error(ErrorKind::device, "cuda.architecture",
                fmt::format("libnvrtc.so.{}, which compiles the kernels of a model, cannot do so for this GPU ({})",
                            CUDART_VERSION / 1000, architecture),
                "a GPU newer than the library needs a newer CUDA Toolkit; --executor=cpu runs anywhere");
  }
  if (status == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) {  // a separate library that NVRTC opens when it compiles
    throw Error(ErrorKind::device, "cuda.library",
                fmt::format("libnvrtc.so.{}, which compiles the kernels of a model, does not find its other half: {}",
                            CUDART_VERSION / 1000, code.log.substr(0, code.log.find('\n'))),
                "LD_LIBRARY_PATH can name the folder of libnvrtc-builtins.so; --no-fuse does without NVRTC");
  }
  if (code.image.empty())
    throw std::logic_error(fmt::format("a generated kernel does not compile:\n{}\n{}", code.log, source));
  return code;
}

// Compiler option that the source requests; "" if it has none.
std::string wished_option(const std::string& source) {
  if (!source.starts_with(kOptionPrefix)) return {};
  const std::size_t begin = kOptionPrefix.size();
  return source.substr(begin, source.find('\n') - begin);
}

std::uint32_t spilled(const CompiledCode& code) {
  std::uint32_t bytes = 0;
  for (const KernelResources& kernel : code.kernels()) bytes += kernel.spill_bytes;
  return bytes;
}

// Limit in bytes. Larger spills hold values that rows need at a time, and also occur without the option.
constexpr std::uint32_t kFewBytes = 256;

CompiledCode compile_as_wished(const std::string& source, const std::string& architecture,
                               const std::vector<std::string>& options) {
  const std::string wish = wished_option(source);
  if (wish.empty()) return compile(source, architecture, options);
  std::vector<std::string> more = options;
  more.push_back(wish);
  CompiledCode code = compile(source, architecture, more);
  if (spilled(code) == 0 || spilled(code) > kFewBytes) return code;
  CompiledCode other = compile(source, architecture, options);
  return spilled(other) < spilled(code) ? other : code;
}

// Compiles each piece on its own thread; returns nothing if the source is compiled as one text.
std::optional<CompiledCode> compile_in_pieces(const KernelSource& source, const std::string& architecture,
                                              std::vector<std::string> options) {
  if (!in_pieces(source)) return std::nullopt;
  options.emplace_back("--relocatable-device-code=true");
  options.emplace_back("--define-macro=GRAPHRUN_IN_PARTS");
  options.push_back(fmt::format("--maxrregcount={}", std::min(255u, 65536 / source.threads / 8 * 8)));
  std::vector<std::future<CompiledCode>> each;
  for (const std::string& piece : source.pieces)
    each.push_back(std::async(std::launch::async, [&] { return compile(piece, architecture, options); }));
  std::vector<CompiledCode> pieces;
  std::string log;
  for (std::future<CompiledCode>& one : each) log += pieces.emplace_back(one.get()).log;
  CompiledCode linked = link_pieces(pieces, architecture);
  linked.log.insert(0, log);
  return linked;
}

}  // namespace

// From 9.0 on, the letter selects instructions that no other device has.
std::string architecture_of(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

std::string architecture_of_device(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  return architecture_of(major, minor);
}

ObtainedCode obtain_code(const KernelSource& source, const std::string& architecture, const KernelCache& cache) {
  const std::vector<std::string> options = options_for(architecture);
  const std::string key = key_of(source, options);
  if (const std::optional<std::string> bytes = cache.find(key))
    if (std::optional<CompiledCode> code = from_bytes(*bytes)) return {std::move(*code), false};
  std::optional<CompiledCode> code = compile_in_pieces(source, architecture, options);
  if (!code) code = compile_as_wished(source.text, architecture, options);
  cache.store(key, to_bytes(*code));
  return {std::move(*code), true};
}

const CompiledCode& compiled_code(const KernelSource& source, const std::string& architecture, bool* compiled) {
  static OncePerKey<std::string, CompiledCode> known;
  return known.get(architecture + "\n" + source.text, [&] {
    ObtainedCode obtained = obtain_code(source, architecture, KernelCache::of_environment());
    if (compiled != nullptr) *compiled = obtained.compiled;
    return std::move(obtained.code);
  });
}

CompiledKernels::CompiledKernels(const KernelSource& source) {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const CompiledCode& code = compiled_code(source, architecture_of_device(device), &compiled_);
  check(cudaLibraryLoadData(&library_, code.image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cudaLibraryLoadData");
}

CompiledKernels::~CompiledKernels() {
  if (library_ != nullptr) cudaLibraryUnload(library_);
}

void* CompiledKernels::find_variable(const std::string& name) const {
  void* address = nullptr;
  std::size_t bytes = 0;
  check(cudaLibraryGetGlobal(&address, &bytes, library_, name.c_str()), "cudaLibraryGetGlobal");
  return address;
}

const void* CompiledKernels::find(const std::string& name) const {
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library_, name.c_str()), "cudaLibraryGetKernel");
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace graphrun::cuda
