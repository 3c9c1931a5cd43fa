// output_name.h: names for new files that nobody has yet.
// Contract: 64 random bits. A name that is taken all the same has to be refused by whoever opens it (O_EXCL).
#pragma once

#include <string>
#include <string_view>

namespace graphrun {

std::string random_digits();  // 16 hex digits
// "folder/stem-0123456789abcdef.npz", which is no file now.
std::string new_name(std::string_view folder, std::string_view stem, std::string_view extension);

}  // namespace graphrun
