// file.h: a whole file read.
// Contract: throws Error (kind input) that names the path and the cause, also for what is larger than the limit of
// input_limit.h, before it allocates, and for a device other than a terminal. Leaves to others: writing
// (output_file.h).
#pragma once

#include <string>

namespace graphrun {

std::string read_file(const std::string& path);

void reject_device(int descriptor, const std::string& path);  // throws Error for one other than a terminal

// The name in the path's folder that is nearest to its own; "" when none is near. Of a folder's entries 2,000 are
// looked at.
std::string nearest_file(const std::string& path);

}  // namespace graphrun
