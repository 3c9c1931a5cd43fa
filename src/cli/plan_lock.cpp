#include "plan_lock.h"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::string_view kFirstLine = "graphrun plan lock 1";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "h.W#7" becomes "h.W".
std::string without_numbers(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t end = i + 1;
    if (text[i] == '#') {
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    }
    if (end == i + 1) {
      result += text[i];
    } else {
      i = end - 1;
    }
  }
  return result;
}

// Lines of one text that the other has not, in order.
std::vector<std::string_view> missing(const std::vector<std::string_view>& of,
                                      const std::vector<std::string_view>& in) {
  std::map<std::string_view, int> there;
  for (const std::string_view line : in) ++there[line];
  std::vector<std::string_view> result;
  for (const std::string_view line : of) {
    if (--there[line] < 0) result.push_back(line);
  }
  return result;
}

std::string listed(const std::vector<std::string_view>& lines, char sign) {
  constexpr std::size_t kListed = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(kListed, lines.size()); ++i) {
    std::string_view line = lines[i];
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    text += fmt::format("\n{} {}", sign, line);
  }
  if (lines.size() > kListed) text += fmt::format("\n{} and {} more lines", sign, lines.size() - kListed);
  return text;
}

Error lock_error(ErrorKind kind, std::string_view code, const std::string& path, std::string message,
                 std::string hint) {
  Diagnostic told;
  told.code = fmt::format("lock.{}", code);
  told.file = path;
  told.message = std::move(message);
  told.hint = std::move(hint);
  return Error(kind, {std::move(told)});
}

}  // namespace

std::string plan_lock(const Program& program) {
  return fmt::format("{}\n{}", kFirstLine, without_numbers(to_string(program)));
}

void check_lock(const Program& program, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string before{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad())
    throw lock_error(ErrorKind::input, "file", path, "cannot be read: " + std::generic_category().message(errno),
                     "graphrun plan MODEL.json --lock FILE writes one");
  if (!before.starts_with(kFirstLine))
    throw lock_error(ErrorKind::input, "file", path, fmt::format("is no lock file: expected '{}' first", kFirstLine),
                     "graphrun plan MODEL.json --lock FILE writes one");
  const std::string now = plan_lock(program);
  if (now == before) return;
  const std::vector<std::string_view> old_lines = lines_of(before), new_lines = lines_of(now);
  const std::vector<std::string_view> gone = missing(old_lines, new_lines), added = missing(new_lines, old_lines);
  const std::string what = gone.empty() && added.empty()
                               ? "its lines in another order"
                               : fmt::format("{} lines are gone, {} are new", gone.size(), added.size());
  throw lock_error(ErrorKind::check, "differs", path,
                   fmt::format("tells of another plan: {}{}{}", what, listed(gone, '-'), listed(added, '+')),
                   "--lock writes the new one down");
}

}  // namespace graphrun::cli
