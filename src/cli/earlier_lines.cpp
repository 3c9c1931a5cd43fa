#include "earlier_lines.h"

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
                fmt::format("cannot read '{}', which goes on: {}", path, std::generic_category().message(errno)));
  return file;
}

// Without one that has no end.
bool next_line(std::ifstream& file, std::string& line) {
  return static_cast<bool>(std::getline(file, line)) && !file.eof();
}

// The second cell.
std::optional<std::uint64_t> step_of_line(std::string_view line) {
  const std::size_t comma = line.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  std::uint64_t step = 0;
  const auto [rest, error] = std::from_chars(line.data() + comma + 1, line.data() + line.size(), step);
  if (error != std::errc() || rest == line.data() + line.size() || *rest != ',') return std::nullopt;
  return step;
}

}  // namespace

std::optional<std::string> log_lines_until(const std::string& path, std::string_view header, std::uint64_t step) {
  std::string text, line;
  std::optional<std::ifstream> file = opened(path);
  if (!file || !next_line(*file, line) || line != header) return std::nullopt;
  while (next_line(*file, line)) {
    const std::optional<std::uint64_t> of = step_of_line(line);
    if (!of || *of > step) break;
    text += line + '\n';
  }
  return text;
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
