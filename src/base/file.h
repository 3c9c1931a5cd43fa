// file.h: reads a whole file; random names for new files.
// Contract: throws Error (kind input) that names the path and the cause. A file beyond the limit of input_limit.h is
// rejected before allocation, and so is a device other than a terminal. Not here: writing (output_file.h).
#pragma once

#include <string>
#include <string_view>

namespace graphrun {

std::string read_file(const std::string& path);

void reject_device(int descriptor, const std::string& path);  // throws Error for a device other than a terminal

// Name in the path's folder that is closest to its own, among those with the extension (default: any); "" if none is
// close. Checks at most 2,000 of them.
std::string nearest_file(const std::string& path, std::string_view extension = {});

// 16 hex digits, from 64 random bits. The caller must open the file with O_EXCL, in case the name exists.
std::string random_digits();

}  // namespace graphrun
