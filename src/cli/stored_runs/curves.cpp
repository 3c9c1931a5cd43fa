#include "cli/stored_runs/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/stored_runs/json_table.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1}
                                   << 28;  // a history of millions of reports; an endless pipe has an end

Error bad_table(std::string code, const std::string& path, int line, std::string message, std::string hint = {}) {
  Diagnostic diagnostic;
  diagnostic.code = "plot." + code;
  diagnostic.file = path;
  diagnostic.line = line;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return Error(ErrorKind::input, {diagnostic});
}

std::string whole_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw bad_table("file", path, 0, "is a folder, not a CSV file or JSON Lines");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) throw bad_table("file", path, 0, "cannot be read: " + std::generic_category().message(errno));
  std::string text;
  char bytes[1 << 16];
  while (const std::size_t count = std::fread(bytes, 1, sizeof bytes, file.get())) {
    text.append(bytes, count);
    if (text.size() > kMostBytes) throw bad_table("size", path, 0, "is larger than 256 MiB, the limit of plot");
  }
  if (std::ferror(file.get()) != 0)
    throw bad_table("file", path, 0, "cannot be read: " + std::generic_category().message(errno));
  return text;
}

// Takes the next line off the text, without its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view trimmed(std::string_view cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t')) cell.remove_suffix(1);
  return cell;
}

// The cells of a line. A quoted one may hold commas; a quote in it is doubled.
void cut(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    if (at < line.size() && line[at] == '"') quoted = !quoted;
    if (at < line.size() && (line[at] != ',' || quoted)) continue;
    std::string_view cell = trimmed(line.substr(begin, at - begin));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    begin = at + 1;
  }
}

std::optional<double> number_in(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || rest != cell.data() + cell.size()) return std::nullopt;
  return value;
}

// Mistakes of the lines: the first are told, the others counted.
class Mistakes {
 public:
  explicit Mistakes(const Table& table) : table_(table) {}

  void add(int line, std::string_view source, std::string message) {
    if (list_.size() == kMaxDiagnostics) {
      ++more_;
      return;
    }
    Diagnostic diagnostic;
    diagnostic.code = "plot.value";
    diagnostic.file = table_.path;
    diagnostic.line = line;
    diagnostic.message = std::move(message);
    diagnostic.source_line = source;
    list_.push_back(std::move(diagnostic));
  }
  void check() const {
    if (!list_.empty()) throw Error(ErrorKind::input, list_, more_);
  }

 private:
  const Table& table_;
  std::vector<Diagnostic> list_;
  std::size_t more_ = 0;
};

}  // namespace

Table read_table(const std::string& path) {
  std::string text = whole_file(path);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (trimmed(text).starts_with('{')) {
    JsonTable json = read_json_lines(path, text);
    if (json.columns.empty()) throw bad_table("empty", path, 0, "has only empty objects");
    return {path, std::move(json.rows), 1, std::move(json.columns)};
  }
  std::string_view rest = text;
  const std::string_view header = take_line(rest);
  if (trimmed(header).empty())
    throw bad_table("empty", path, 0, text.empty() ? "is empty" : "begins with an empty line, expected column names",
                    "the first line names the columns: epoch,loss");
  std::vector<std::string_view> cells;
  cut(header, cells);
  Table table{path, {}, 2, {cells.begin(), cells.end()}};
  if (trimmed(rest).empty()) throw bad_table("empty", path, 0, "has no rows below the header");
  table.rows = rest;
  return table;
}

std::size_t find_column(const Table& table, std::string_view name) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), name);
  if (found != table.columns.end()) return static_cast<std::size_t>(found - table.columns.begin());
  std::string hint = graphrun::did_you_mean(name, table.columns);
  if (hint.empty()) hint = fmt::format("its columns are {}", fmt::join(table.columns, ", "));
  throw bad_table("column", table.path, 1, fmt::format("has no column '{}'", name), std::move(hint));
}

std::vector<Points> read_curves(const Table& table, std::size_t x, const std::vector<std::size_t>& ys) {
  std::vector<Points> curves(ys.size());
  Mistakes mistakes(table);
  std::string_view rest = table.rows;
  std::vector<std::string_view> cells;
  for (int line = table.first_line; !rest.empty(); ++line) {
    const std::string_view source = take_line(rest);
    if (trimmed(source).empty()) continue;
    cut(source, cells);
    if (cells.size() != table.columns.size()) {
      mistakes.add(line, source, fmt::format("{} cells, but {} columns", cells.size(), table.columns.size()));
      continue;
    }
    const auto number_at = [&](std::size_t column) -> std::optional<double> {
      if (cells[column].empty()) return std::nullopt;
      const std::optional<double> number = number_in(cells[column]);
      if (!number)
        mistakes.add(line, source, fmt::format("{} is not a number: '{}'", table.columns[column], cells[column]));
      return number;
    };
    const std::optional<double> place = number_at(x);
    for (std::size_t i = 0; i < ys.size(); ++i) {
      const std::optional<double> value = number_at(ys[i]);
      curves[i].sparse = curves[i].sparse || !value;
      if (!place || !value) continue;
      curves[i].x.push_back(*place);
      curves[i].y.push_back(*value);
    }
  }
  mistakes.check();
  return curves;
}

}  // namespace graphrun::cli
