// log_resume.h: reads the lines that the interrupted training wrote, up to the checkpoint to resume from.
// Contract: returns complete lines only, so that a line cut off by a crash is dropped. Throws Error (kind input) if the
// file cannot be read; a missing file has no lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace graphrun::cli {

// --log: lines after `header` with a step of at most `step`; empty optional if there is no log or its header differs.
std::optional<std::string> log_lines_until(const std::string& path, std::string_view header, std::uint64_t step);

// --log as JSON Lines: objects whose "step" is at most `step`; empty optional if there is no file.
std::optional<std::string> json_lines_until(const std::string& path, std::uint64_t step);

// --losses: the first `steps` lines; "" if there are fewer.
std::string first_losses(const std::string& path, std::uint64_t steps);

}  // namespace graphrun::cli
