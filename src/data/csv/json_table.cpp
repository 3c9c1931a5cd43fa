#include "data/csv/json_table.h"

#include <fmt/format.h>

#include "base/text.h"
#include "data/transforms/encoding.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

// Numbers of nested arrays, in row-major order.
void flatten(const json::Value& value, std::vector<const json::Value*>& leaves) {
  if (value.kind != json::Kind::array) return leaves.push_back(&value);
  for (const json::Value& item : value.items) flatten(item, leaves);
}

std::string text_of(const json::Value& value) {
  switch (value.kind) {
    case json::Kind::string:
      return value.string;
    case json::Kind::boolean:
      return value.boolean ? "true" : "false";
    case json::Kind::integer:
      return std::to_string(value.integer);
    case json::Kind::real:
      return fmt::format("{}", value.real);
    default:
      return {};
  }
}

}  // namespace

JsonTable::JsonTable(std::string path, const Chunk& chunk, Notation notation)
    : TextTable(std::move(notation)), path_(std::move(path)), rows_before_(chunk.rows_before) {
  require_utf8(path_, chunk.bytes, chunk.lines_before);
  const std::size_t first = chunk.bytes.find_first_not_of(" \t\r\n");
  if (!chunk.is_lines && first != std::string::npos && chunk.bytes[first] == '[') {
    const json::Document document = json::parse(path_, chunk.bytes);
    for (const json::Value& item : document.root.items) add_row(item);
  } else {
    int number = chunk.lines_before;
    for (const std::string_view line : lines_of(chunk.bytes)) {
      ++number;
      if (const std::string_view text = trimmed(line); rows_.empty() && text.starts_with('{') && !text.ends_with('}'))
        throw error(number, 1, "expected one object per line, or an array of objects; this object has several lines",
                    "\"json\" reads one object of flat arrays with m, n, x and y: see docs/reference/data.md");
      if (!trimmed(line).empty()) add_row(json::parse(path_, std::string(line), number).root);
    }
  }
  if (rows_.empty()) throw Error(ErrorKind::input, "data.records", fmt::format("'{}': the file has no rows", path_));
}

void JsonTable::add_row(const json::Value& object) {
  if (object.kind != json::Kind::object)
    throw error(object.line, object.column,
                fmt::format("expected an object for each row, got {}", name_of(object.kind)),
                "rows are an array of objects, or one object a line");
  Row row{{}, object.line, object.column};
  for (const json::Member& member : object.members) add_value(row, member.key, member.value);
  rows_.push_back(std::move(row));
}

void JsonTable::add_value(Row& row, const std::string& name, const json::Value& value) {
  std::vector<const json::Value*> leaves;
  flatten(value, leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const json::Value& leaf = *leaves[i];
    if (leaf.kind == json::Kind::object)
      throw error(leaf.line, leaf.column, fmt::format("'{}': expected a number or a word, got an object", name), "");
    const std::string column = leaves.size() == 1 ? name : name + std::to_string(i);
    const auto [place, is_new] = index_.try_emplace(column, names_.size());
    if (is_new) names_.push_back(column);
    if (row.cells.size() <= place->second) row.cells.resize(place->second + 1);
    row.cells[place->second] = {text_of(leaf), leaf.line, leaf.column};
  }
}

std::string_view JsonTable::text(std::size_t row, std::size_t column) const {
  const std::vector<Cell>& cells = rows_[row].cells;
  if (column < cells.size() && cells[column].line > 0) return cells[column].text;
  // A misspelled key would otherwise count as a missing value and be imputed.
  fail_at(row, column, fmt::format("the row has no key '{}'", names_[column]), "use null for a missing value");
}

Error JsonTable::error_at(std::size_t row, std::size_t column, std::string_view what, std::string hint) const {
  const Row& at = rows_[row];
  const bool is_there = column < at.cells.size() && at.cells[column].line > 0;
  return error(is_there ? at.cells[column].line : at.line, is_there ? at.cells[column].column : at.column,
               fmt::format("row {}, column '{}': {}", row + rows_before_, names_[column], what), std::move(hint));
}

Error JsonTable::error(int line, int column, std::string message, std::string hint) const {
  return Error(ErrorKind::input, {{"data.records", std::move(message), std::move(hint), path_, line, column, {}, {}}});
}

}  // namespace graphrun::data
