#include "cli/stored_runs/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/json_reader.h"
#include "base/text.h"
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

// Converts a line to valid JSON: replaces NaN and Infinity, which Python writes, by numbers of the same length.
std::string as_json(std::string_view line) {
  std::string json(line);
  for (const std::string_view word : {"NaN", "Infinity"}) {
    for (std::size_t at = json.find(word); at != std::string::npos; at = json.find(word, at + 1)) {
      const std::size_t before = json.find_last_not_of(" \t", at - 1);
      const bool is_quoted = std::count(json.begin(), json.begin() + static_cast<std::ptrdiff_t>(at), '"') % 2 != 0;
      if (!is_quoted && at > 0 && before < at && (json[before] == ':' || json[before] == '-'))
        json.replace(at, word.size(), word.size(), '1');
    }
  }
  return json;
}

// Number as written in the line; null becomes nan.
std::string cell_of(const json::Value& value, std::string_view line) {
  if (value.kind == json::Kind::null) return "nan";
  if (value.kind == json::Kind::string) return value.string;
  line.remove_prefix(static_cast<std::size_t>(value.column) - 1);
  return std::string(line.substr(0, line.find_first_of(",} \t")));
}

Table json_table(const std::string& path, std::string_view text) {
  Table table{path, {}, {}};
  for (const std::string_view source : lines_of(text)) {
    TableLine& line = table.lines.emplace_back();
    line.number = static_cast<int>(table.lines.size());
    if (trimmed(source).empty()) continue;
    const json::Document document = json::parse(path, as_json(source), line.number);
    json::Reader reader(document);
    const json::Ref root = reader.root();
    if (root.value->kind != json::Kind::object) reader.report(root, "plot.json", "expected an object on each line");
    for (const json::Member& member : root.value->members) {
      if (member.value.kind == json::Kind::object || member.value.kind == json::Kind::array)
        reader.report(root.member(member), "plot.json", "expected a number, a string or null, not objects and lists");
      const auto found = std::find(table.columns.begin(), table.columns.end(), member.key);
      const auto column = static_cast<std::size_t>(found - table.columns.begin());
      if (found == table.columns.end()) table.columns.push_back(member.key);
      line.cells.resize(std::max(line.cells.size(), column + 1));
      line.cells[column] = cell_of(member.value, source);
    }
    reader.throw_if_failed();
  }
  for (TableLine& line : table.lines) {
    if (line.cells.empty()) continue;
    line.cells.resize(table.columns.size());
    std::vector<std::string> cells;
    for (const std::string& cell : line.cells) cells.push_back(csv_cell(cell));
    line.source = fmt::format("{}", fmt::join(cells, ","));
  }
  if (table.columns.empty()) throw bad_table("empty", path, 0, "has only empty objects");
  return table;
}

}  // namespace

Table read_table(const std::string& path) {
  std::string text = read_file(path);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (trimmed(text).starts_with('{')) return json_table(path, text);
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty() || trimmed(lines[0]).empty())
    throw bad_table("empty", path, 0, text.empty() ? "is empty" : "begins with an empty line, expected column names",
                    "the first line names the columns: epoch,loss");
  if (trimmed(std::string_view(text).substr(std::min(text.find('\n'), text.size() - 1) + 1)).empty())
    throw bad_table("empty", path, 0, "has no rows below the header");
  Table table{.path = path, .columns = csv_texts(lines[0]), .lines = {}, .is_whole = text.ends_with('\n')};
  for (std::size_t i = 1; i < lines.size(); ++i)
    table.lines.push_back({static_cast<int>(i) + 1, std::string(lines[i]), csv_texts(lines[i])});
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
  for (const TableLine& line : table.lines) {
    if (trimmed(line.source).empty()) continue;
    if (line.cells.size() != table.columns.size()) {
      errors.add("plot.value", line.number, 0, line.source,
                 fmt::format("{} cells, but {} columns", line.cells.size(), table.columns.size()));
      continue;
    }
    const auto number_at = [&](std::size_t column) -> std::optional<double> {
      const std::string& text = line.cells[column];
      const std::optional<double> number = parse_number<double>(std::string_view(text).substr(text.starts_with('+')));
      if (!number && !text.empty())
        errors.add("plot.value", line.number, 0, line.source,
                   fmt::format("{} is not a number: '{}'", table.columns[column], text));
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
