// linker.h: links the separately compiled pieces of one kernel to one image with libnvJitLink, which is opened on first
// use.
// Contract: the same pieces give the same image. Throws std::logic_error with the linker's message if pieces do not
// match. The caller must not pass code of a compiler that is newer than the library.
// Not here: compiling (nvrtc.h).
#pragma once

#include <string>
#include <vector>

#include "executors/cuda/compiled_code.h"

namespace graphrun::cuda {

struct ToolVersion {
  int major = 0, minor = 0;
};
ToolVersion linker_version();  // 0.0 if not installed

// The log is that of linking: it lists the registers of each kernel.
CompiledCode link_pieces(const std::vector<CompiledCode>& pieces, const std::string& architecture);

}  // namespace graphrun::cuda
