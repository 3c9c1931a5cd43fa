#include "executors/cuda/linker.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvJitLink.h>

#include <stdexcept>

#include "executors/cuda/dynamic_library.h"

namespace graphrun::cuda {
namespace {

// The header maps names to those of its own version; the library also exports them without a version.
struct LinkerFunctions {
  DynamicLibrary library{fmt::format("libnvJitLink.so.{}", CUDART_VERSION / 1000),
                         "the kernels of this model are linked by"};
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define X(name) decltype(&nvJitLink##name) name = library.find<decltype(name)>("nvJitLink" #name);
  // clang-format off
  X(Version) X(Create) X(Destroy) X(AddData) X(Complete) X(GetLinkedCubinSize) X(GetLinkedCubin) X(GetInfoLogSize)
  X(GetInfoLog) X(GetErrorLogSize) X(GetErrorLog)
  // clang-format on
#undef X
};
// Returns null if the library is not installed.
const LinkerFunctions* linker() {
  static const LinkerFunctions* const loaded = []() -> const LinkerFunctions* {
    try {
      return new LinkerFunctions;
    } catch (const Error&) {
      return nullptr;
    }
  }();
  return loaded;
}

std::string log_of(nvJitLinkHandle handle, decltype(&nvJitLinkGetInfoLogSize) size_of,
                   decltype(&nvJitLinkGetInfoLog) get) {
  std::size_t size = 0;
  if (size_of(handle, &size) != NVJITLINK_SUCCESS || size == 0) return {};
  std::string log(size, '\0');
  return get(handle, log.data()) == NVJITLINK_SUCCESS ? log : std::string();
}

bool link(const LinkerFunctions& f, nvJitLinkHandle handle, const std::vector<CompiledCode>& pieces,
          std::vector<char>& image) {
  for (const auto& [piece, log] : pieces)
    if (f.AddData(handle, NVJITLINK_INPUT_CUBIN, piece.data(), piece.size(), "piece") != NVJITLINK_SUCCESS)
      return false;
  std::size_t size = 0;
  if (f.Complete(handle) != NVJITLINK_SUCCESS || f.GetLinkedCubinSize(handle, &size) != NVJITLINK_SUCCESS) return false;
  image.resize(size);
  return f.GetLinkedCubin(handle, image.data()) == NVJITLINK_SUCCESS;
}

}  // namespace

ToolVersion linker_version() {
  static const ToolVersion version = [] {
    unsigned major = 0, minor = 0;
    if (linker() == nullptr || linker()->Version(&major, &minor) != NVJITLINK_SUCCESS) return ToolVersion{};
    return ToolVersion{static_cast<int>(major), static_cast<int>(minor)};
  }();
  return version;
}

CompiledCode link_pieces(const std::vector<CompiledCode>& pieces, const std::string& architecture) {
  const LinkerFunctions* const f = linker();
  if (f == nullptr) throw std::logic_error("there is no linker");
  const std::string target = "-arch=" + architecture;
  const char* options[] = {target.c_str(), "-verbose"};
  nvJitLinkHandle handle = nullptr;
  if (f->Create(&handle, 2, options) != NVJITLINK_SUCCESS)
    throw std::logic_error(fmt::format("nvJitLink does not link code for {}", architecture));
  CompiledCode code;
  const bool linked = link(*f, handle, pieces, code.image);
  code.log = log_of(handle, f->GetInfoLogSize, f->GetInfoLog);
  const std::string errors = log_of(handle, f->GetErrorLogSize, f->GetErrorLog);
  f->Destroy(&handle);
  if (!linked) throw std::logic_error(fmt::format("the parts of a generated kernel do not fit: {}", errors));
  return code;
}

}  // namespace graphrun::cuda
