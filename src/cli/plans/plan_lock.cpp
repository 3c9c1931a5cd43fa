#include "cli/plans/plan_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::string_view kFirstLine = "graphrun plan lock 1";

// Turns "h.W#7" into "h.W".
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

std::size_t digits_at(std::string_view text, std::size_t from) {
  std::size_t end = from;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  return end - from;
}

// Removes the 12 and the 256 from "  12. h = tanh(z)" and "  h: f32(8), 32 bytes at 256": an insertion shifts both in
// all later lines.
std::string without_place(std::string_view line) {
  constexpr std::string_view kAt = " bytes at ";
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size()), number = digits_at(line, begin);
  if (number > 0 && line.substr(begin + number).starts_with(". ")) line.remove_prefix(begin + number);
  const std::size_t at = line.find(kAt);
  if (at == std::string_view::npos) return std::string(line);
  const std::size_t end = at + kAt.size();
  return fmt::format("{}{}", line.substr(0, end), line.substr(end + digits_at(line, end)));
}

// Lines of one text that the other lacks, in order.
template <class Key>
std::vector<std::string_view> missing(const std::vector<std::string_view>& of, const std::vector<std::string_view>& in,
                                      Key key) {
  std::map<std::string, int> there;
  for (const std::string_view line : in) ++there[key(line)];
  std::vector<std::string_view> result;
  for (const std::string_view line : of) {
    if (--there[key(line)] < 0) result.push_back(line);
  }
  return result;
}

std::string listed(const std::vector<std::string_view>& lines, char sign) {
  constexpr std::size_t kListed = 40;
  std::string text;
  for (std::size_t i = 0; i < std::min(kListed, lines.size()); ++i) {
    std::string_view line = lines[i];
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    text += fmt::format("{} {}\n", sign, printable(line));
  }
  if (lines.size() > kListed) text += fmt::format("{} and {} more\n", sign, lines.size() - kListed);
  return text;
}

}  // namespace

std::string plan_lock(const Program& program) {
  return fmt::format("{}\n{}", kFirstLine, without_numbers(to_string(program)));
}

std::optional<std::string> difference_from_lock(const Program& program, const std::string& path) {
  const std::string before = read_file(path), now = plan_lock(program);
  const std::vector<std::string_view> old_lines = lines_of(before), new_lines = lines_of(now);
  if (old_lines.empty() || old_lines[0] != kFirstLine)
    throw Error(ErrorKind::input, "lock.file",
                fmt::format("'{}' is not a plan snapshot: expected '{}'", path, kFirstLine),
                "graphrun plan MODEL.json --lock FILE writes one");
  if (old_lines == new_lines) return std::nullopt;
  const auto as_it_is = [](std::string_view line) { return std::string(line); };
  const auto gone = missing(old_lines, new_lines, as_it_is), added = missing(new_lines, old_lines, as_it_is);
  if (gone.empty() && added.empty()) return "the same lines in another order\n";
  const auto other = missing(old_lines, new_lines, without_place), more = missing(new_lines, old_lines, without_place);
  if (other.empty() && more.empty()) return listed(gone, '-') + listed(added, '+');
  std::string text = listed(other, '-') + listed(more, '+');
  if (const std::size_t moved = gone.size() - other.size(); moved > 0)
    text += fmt::format("{} more lines differ in an offset or in the number of a step\n", moved);
  return text;
}

}  // namespace graphrun::cli
