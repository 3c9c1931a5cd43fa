// file.h: whole files in, whole files out.
// Contract: read_file throws Error (kind input) that names the path and the cause; write_file writes a temporary name
// and renames it, so that a failure leaves the old file as it was.
#pragma once

#include <string>
#include <string_view>

namespace graphrun {

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);

}  // namespace graphrun
