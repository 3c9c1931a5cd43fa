// linker.h: code of one kernel that was compiled in pieces, as one image: by libnvJitLink, which is opened when it is
// first needed.
// Contract: the same pieces give the same image. Where there is no such library, or one that is older than the
// compiler, there is no image: then a kernel is compiled as one text. Leaves to others: compiling (nvrtc.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace graphrun::cuda {

// "nvJitLink 13.0"; "" where there is none.
const std::string& linker_version();

struct LinkedCode {
  std::vector<char> image;
  std::string log;  // tells the registers of each kernel
};
std::optional<LinkedCode> link_pieces(const std::vector<std::vector<char>>& pieces, const std::string& architecture);

}  // namespace graphrun::cuda
