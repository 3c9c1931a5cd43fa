// log_resume.h: what an earlier part of a training wrote to a file of lines, up to the checkpoint that it goes on
// from. Contract: whole lines only, so that a file that was cut short by a crash goes on as if it had not been. Throws
// Error (kind input) when the file cannot be read; one that is not there has no lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace graphrun::cli {

// Of --log: the lines after `header` whose step is not after `step`. Nothing: there is no log, or one with another
// header.
std::optional<std::string> log_lines_until(const std::string& path, std::string_view header, std::uint64_t step);

// Of --log as JSON Lines: the objects whose "step" is not after `step`; nothing: there is no such file.
std::optional<std::string> json_lines_until(const std::string& path, std::uint64_t step);

// Of --losses: the first `steps` lines; none where there are fewer.
std::string first_losses(const std::string& path, std::uint64_t steps);

}  // namespace graphrun::cli
