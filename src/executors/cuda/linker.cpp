#include "executors/cuda/linker.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvJitLink.h>

#include <memory>

#include "executors/cuda/dynamic_library.h"

namespace graphrun::cuda {
namespace {

// The header's names stand for those of its own version; the library has them without one, too.
struct LinkerFunctions {
  DynamicLibrary library{fmt::format("libnvJitLink.so.{}", CUDART_VERSION / 1000),
                         "the kernels of this model are linked by"};
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define X(name) decltype(&nvJitLink##name) name = library.find<decltype(name)>("nvJitLink" #name);
  // clang-format off
  X(Version) X(Create) X(Destroy) X(AddData) X(Complete) X(GetLinkedCubinSize) X(GetLinkedCubin) X(GetInfoLogSize)
  X(GetInfoLog)
  // clang-format on
#undef X
};
// Null where it is not installed.
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

bool link(const LinkerFunctions& f, nvJitLinkHandle handle, const std::vector<std::vector<char>>& pieces,
          LinkedCode& code) {
  for (const std::vector<char>& piece : pieces)
    if (f.AddData(handle, NVJITLINK_INPUT_CUBIN, piece.data(), piece.size(), "piece") != NVJITLINK_SUCCESS)
      return false;
  std::size_t size = 0;
  if (f.Complete(handle) != NVJITLINK_SUCCESS || f.GetLinkedCubinSize(handle, &size) != NVJITLINK_SUCCESS) return false;
  code.image.resize(size);
  if (f.GetLinkedCubin(handle, code.image.data()) != NVJITLINK_SUCCESS) return false;
  if (f.GetInfoLogSize(handle, &size) != NVJITLINK_SUCCESS) return false;
  code.log.resize(size);
  return size == 0 || f.GetInfoLog(handle, code.log.data()) == NVJITLINK_SUCCESS;
}

}  // namespace

const std::string& linker_version() {
  static const std::string version = [] {
    unsigned major = 0, minor = 0;
    if (linker() == nullptr || linker()->Version(&major, &minor) != NVJITLINK_SUCCESS) return std::string();
    return fmt::format("nvJitLink {}.{}", major, minor);
  }();
  return version;
}

std::optional<LinkedCode> link_pieces(const std::vector<std::vector<char>>& pieces, const std::string& architecture) {
  const LinkerFunctions* const f = linker();
  if (f == nullptr) return std::nullopt;
  const std::string target = "-arch=" + architecture;
  const char* options[] = {target.c_str(), "-verbose"};
  nvJitLinkHandle handle = nullptr;
  if (f->Create(&handle, 2, options) != NVJITLINK_SUCCESS) return std::nullopt;
  LinkedCode code;
  const bool linked = link(*f, handle, pieces, code);
  f->Destroy(&handle);
  if (!linked) return std::nullopt;
  return code;
}

}  // namespace graphrun::cuda
