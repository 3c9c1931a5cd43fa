#include "cli/stored_runs/json_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_reader.h"
#include "base/text.h"
#include "cli/terminal/csv_cell.h"

namespace graphrun::cli {
namespace {

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

}  // namespace

JsonTable read_json_lines(const std::string& path, std::string_view text) {
  JsonTable table;
  std::vector<std::vector<std::pair<std::size_t, std::string>>> rows;  // column index, value
  for (const std::string_view line : lines_of(text)) {
    auto& row = rows.emplace_back();
    if (trimmed(line).empty()) continue;
    const json::Document document = json::parse(path, as_json(line), static_cast<int>(rows.size()));
    json::Reader reader(document);
    const json::Ref root = reader.root();
    if (root.value->kind != json::Kind::object) reader.report(root, "plot.json", "expected an object on each line");
    for (const json::Member& member : root.value->members) {
      if (member.value.kind == json::Kind::object || member.value.kind == json::Kind::array)
        reader.report(root.member(member), "plot.json", "expected a number, a string or null, not objects and lists");
      const auto found = std::find(table.columns.begin(), table.columns.end(), member.key);
      row.emplace_back(found - table.columns.begin(), cell_of(member.value, line));
      if (found == table.columns.end()) table.columns.push_back(member.key);
    }
    reader.throw_if_failed();
  }
  for (auto& row : rows) {
    std::vector<std::string> cells(table.columns.size());
    for (auto& [column, value] : row) cells[column] = csv_cell(value);
    table.rows += row.empty() ? "\n" : fmt::format("{}\n", fmt::join(cells, ","));
  }
  return table;
}

}  // namespace graphrun::cli
