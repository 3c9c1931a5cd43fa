// linker.h: links the separately compiled pieces of one kernel to one image with libnvJitLink, which is opened on first
// use.
// Contract: the same pieces give the same image. Throws std::logic_error with the linker's message if pieces do not
// match. The caller must not pass code of a compiler that is newer than the library.
// Not here: compiling (nvrtc.h).
#pragma once

#include <string>
#include <vector>

namespace graphrun::cuda {

struct LinkerVersion {
  int major = 0, minor = 0;  // 0 if not installed
};
LinkerVersion linker_version();

struct LinkedCode {
  std::vector<char> image;
  std::string log;  // lists the registers of each kernel
};
LinkedCode link_pieces(const std::vector<std::vector<char>>& pieces, const std::string& architecture);

}  // namespace graphrun::cuda
