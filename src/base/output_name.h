// output_name.h: random names for new files.
// Contract: 64 random bits. The caller must open the file with O_EXCL, in case the name exists.
#pragma once

#include <string>

namespace graphrun {

std::string random_digits();  // 16 hex digits

}  // namespace graphrun
