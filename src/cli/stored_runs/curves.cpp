#include "cli/stored_runs/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "cli/stored_runs/json_table.h"
#include "cli/terminal/csv_cell.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

Error bad_table(std::string code, const std::string& path, int line, std::string message, std::string hint = {}) {
  return Error(ErrorKind::input, {{"plot." + code, std::move(message), std::move(hint), path, line, 0, {}, {}}});
}

// Suffixes of log columns, and the suffixes that earlier versions used.
constexpr std::pair<std::string_view, std::string_view> kOldEndings[] = {
    {":std", ":deviation"}, {":nonfinite", ":bad"}, {"_mcc", "_matthews"}};

}  // namespace

Table read_table(const std::string& path) {
  std::string text = read_file(path);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (trimmed(text).starts_with('{')) {
    JsonTable json = read_json_lines(path, text);
    if (json.columns.empty()) throw bad_table("empty", path, 0, "has only empty objects");
    return {path, std::move(json.rows), 1, std::move(json.columns)};
  }
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty() || trimmed(lines[0]).empty())
    throw bad_table("empty", path, 0, text.empty() ? "is empty" : "begins with an empty line, expected column names",
                    "the first line names the columns: epoch,loss");
  Table table{path, text.substr(std::min(text.find('\n'), text.size() - 1) + 1), 2, {}};
  for (CsvCell& cell : csv_cells(lines[0])) table.columns.push_back(std::move(cell.text));
  if (trimmed(table.rows).empty()) throw bad_table("empty", path, 0, "has no rows below the header");
  return table;
}

std::size_t find_column(const Table& table, std::string_view name) {
  auto found = std::find(table.columns.begin(), table.columns.end(), name);
  for (const auto& [now, before] : kOldEndings) {
    if (found == table.columns.end() && name.ends_with(now))
      found = std::find(table.columns.begin(), table.columns.end(),
                        fmt::format("{}{}", name.substr(0, name.size() - now.size()), before));
  }
  if (found != table.columns.end()) return static_cast<std::size_t>(found - table.columns.begin());
  std::string hint = graphrun::did_you_mean(name, table.columns);
  if (hint.empty()) hint = fmt::format("its columns are {}", fmt::join(table.columns, ", "));
  throw bad_table("column", table.path, 1, fmt::format("has no column '{}'", name), std::move(hint));
}

std::vector<Points> read_curves(const Table& table, std::size_t x, const std::vector<std::size_t>& ys) {
  std::vector<Points> curves(ys.size());
  LineErrors errors(table.path);
  int line = table.first_line - 1;
  for (const std::string_view source : lines_of(table.rows)) {
    ++line;
    if (trimmed(source).empty()) continue;
    const std::vector<CsvCell> cells = csv_cells(source);
    if (cells.size() != table.columns.size()) {
      errors.add("plot.value", line, 0, source,
                 fmt::format("{} cells, but {} columns", cells.size(), table.columns.size()));
      continue;
    }
    const auto number_at = [&](std::size_t column) -> std::optional<double> {
      const std::string& text = cells[column].text;
      const std::optional<double> number = parse_number<double>(std::string_view(text).substr(text.starts_with('+')));
      if (!number && !text.empty())
        errors.add("plot.value", line, 0, source, fmt::format("{} is not a number: '{}'", table.columns[column], text));
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
  errors.check();
  return curves;
}

}  // namespace graphrun::cli
