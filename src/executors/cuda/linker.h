// linker.h: code of one kernel that was compiled in pieces, as one image: by libnvJitLink, which is opened when it is
// first needed.
// Contract: the same pieces give the same image. Throws std::logic_error with the linker's words where pieces do not
// fit each other. Code of a compiler that is newer than the library is not linked: that is for who calls to know.
// Leaves to others: compiling (nvrtc.h).
#pragma once

#include <string>
#include <vector>

namespace graphrun::cuda {

struct LinkerVersion {
  int major = 0, minor = 0;  // 0: it is not installed
};
LinkerVersion linker_version();

struct LinkedCode {
  std::vector<char> image;
  std::string log;  // tells the registers of each kernel
};
LinkedCode link_pieces(const std::vector<std::vector<char>>& pieces, const std::string& architecture);

}  // namespace graphrun::cuda
