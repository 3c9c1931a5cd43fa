// output_name.h: names for new files that nobody has yet.
// Contract: 64 random bits. A name that is taken all the same has to be refused by whoever opens it (O_EXCL).
#pragma once

#include <string>

namespace graphrun {

std::string random_digits();  // 16 hex digits

}  // namespace graphrun
