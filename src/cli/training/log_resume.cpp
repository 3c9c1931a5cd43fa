#include "cli/training/log_resume.h"

#include <filesystem>
#include <span>
#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace graphrun::cli {
namespace {

// Complete lines of a file; nothing if it does not exist.
std::optional<std::string> whole_lines(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  std::string text = read_file(path);
  text.resize(text.rfind('\n') + 1);
  return text;
}

// Parses the number between the first occurrence of `before` and a comma.
std::optional<std::uint64_t> step_of_line(std::string_view line, std::string_view before) {
  const std::size_t found = line.find(before);
  if (found == std::string_view::npos) return std::nullopt;
  const std::string_view number = line.substr(found + before.size()), digits = number.substr(0, number.find(','));
  return digits.size() == number.size() ? std::nullopt : parse_number<std::uint64_t>(digits);
}

std::string lines_until(std::span<const std::string_view> lines, std::string_view before_step, std::uint64_t step) {
  std::string text;
  for (const std::string_view line : lines) {
    const std::optional<std::uint64_t> of = step_of_line(line, before_step);
    if (!of || *of > step) break;
    text.append(line) += '\n';
  }
  return text;
}

}  // namespace

std::optional<std::string> log_lines_until(const std::string& path, std::string_view header, std::uint64_t step) {
  const std::optional<std::string> text = whole_lines(path);
  if (!text || !text->starts_with(header) || text->find('\n') != header.size()) return std::nullopt;
  const std::vector<std::string_view> lines = lines_of(*text);
  return lines_until(std::span(lines).subspan(1), ",", step);
}

std::optional<std::string> json_lines_until(const std::string& path, std::uint64_t step) {
  const std::optional<std::string> text = whole_lines(path);
  return text ? std::optional(lines_until(lines_of(*text), R"("step":)", step)) : std::nullopt;
}

std::string first_losses(const std::string& path, std::uint64_t steps) {
  const std::string text = whole_lines(path).value_or("");
  std::size_t end = 0;
  for (std::uint64_t i = 0; i < steps; ++i) {
    end = text.find('\n', end) + 1;
    if (end == 0) return {};
  }
  return text.substr(0, end);
}

}  // namespace graphrun::cli
