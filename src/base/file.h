// file.h: whole files in, whole files out.
// Contract: read_file throws Error (kind input) that names the path and the cause, also for what is larger than the
// limit of input_limit.h, before it allocates, and for a device other than a terminal; write_file writes a temporary
// name and renames it, so that a failure leaves the old file as it was.
#pragma once

#include <string>
#include <string_view>

namespace graphrun {

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);

}  // namespace graphrun
