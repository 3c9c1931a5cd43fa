#include "cli/terminal/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <system_error>

#include "graphrun/error.h"
#include "graphrun/output_file.h"

namespace graphrun::cli {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

std::size_t code_points(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(stream)) != 0 && (term == nullptr || std::string_view(term) != "dumb");
}

int terminal_columns(std::FILE* stream) {
  winsize size{};
  const bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

bool takes_colour(std::FILE* stream) {
  return is_terminal(stream) && !is_set("NO_COLOR");
}

bool speaks_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string name(value);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
  }
  return false;
}

std::string paint(std::FILE* stream, Style style, std::string_view text) {
  if (!takes_colour(stream)) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", style == Style::bold ? 1 : 33, text);
}

// Unbuffered, so that messages survive a crash.
void write_error(std::string_view text) noexcept {
  write_all(STDERR_FILENO, text);
}

void write_results(std::string_view text) {
  if (write_all(STDOUT_FILENO, text)) return;
  throw Error(ErrorKind::run, "output.write",
              "the results could not be written to stdout: " + std::generic_category().message(errno));
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> units = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return grouped(bytes) + " bytes";
  double scaled = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; scaled >= 1024 && unit + 1 < units.size(); ++unit) scaled /= 1024;
  return fmt::format("{} bytes ({:.1f} {})", grouped(bytes), scaled, units[unit]);
}

std::string human_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto whole = static_cast<std::uint64_t>(std::lround(seconds));
  const std::uint64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest) : fmt::format("{}:{:02}", minutes, rest);
}

std::string human_time(double seconds) {
  if (!(seconds >= 0)) return "?";
  if (seconds < 1e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

std::string human_rate(double per_second) {
  if (!(per_second >= 100) || per_second > 1e18) return fmt::format("{:.3g}", per_second);
  return grouped(static_cast<std::uint64_t>(std::llround(per_second)));
}

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], code_points(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - code_points(row[i]), ' ');
      text += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

}  // namespace graphrun::cli
