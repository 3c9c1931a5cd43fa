#include "cli/training/earlier_lines.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

std::optional<std::ifstream> opened(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(ErrorKind::input, "resume.read",
                fmt::format("cannot read '{}' to resume it: {}", path, std::generic_category().message(errno)));
  return file;
}

// Without one that has no end.
bool next_line(std::ifstream& file, std::string& line) {
  return static_cast<bool>(std::getline(file, line)) && !file.eof();
}

// The number between `before`, which is the line's first, and a comma.
std::optional<std::uint64_t> step_of_line(std::string_view line, std::string_view before) {
  const std::size_t found = line.find(before);
  if (found == std::string_view::npos) return std::nullopt;
  std::uint64_t step = 0;
  const auto [rest, error] = std::from_chars(line.data() + found + before.size(), line.data() + line.size(), step);
  if (error != std::errc() || rest == line.data() + line.size() || *rest != ',') return std::nullopt;
  return step;
}

}  // namespace

namespace {
std::string lines_until(std::ifstream& file, std::string_view before_step, std::uint64_t step) {
  std::string text, line;
  while (next_line(file, line)) {
    const std::optional<std::uint64_t> of = step_of_line(line, before_step);
    if (!of || *of > step) break;
    text += line + '\n';
  }
  return text;
}
}  // namespace

std::optional<std::string> log_lines_until(const std::string& path, std::string_view header, std::uint64_t step) {
  std::string line;
  std::optional<std::ifstream> file = opened(path);
  if (!file || !next_line(*file, line) || line != header) return std::nullopt;
  return lines_until(*file, ",", step);
}

std::optional<std::string> json_lines_until(const std::string& path, std::uint64_t step) {
  std::optional<std::ifstream> file = opened(path);
  if (!file) return std::nullopt;
  return lines_until(*file, R"("step":)", step);
}

std::string first_losses(const std::string& path, std::uint64_t steps) {
  std::string text, line;
  std::optional<std::ifstream> file = opened(path);
  if (!file) return text;
  for (std::uint64_t i = 0; i < steps; ++i) {
    if (!next_line(*file, line)) return {};
    text += line + '\n';
  }
  return text;
}

}  // namespace graphrun::cli
