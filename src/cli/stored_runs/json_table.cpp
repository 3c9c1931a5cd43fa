#include "cli/stored_runs/json_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/terminal/csv_cell.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

// One line: an object without objects or lists in it.
class LineReader {
 public:
  LineReader(const std::string& path, std::string_view line, int number) : path_(path), line_(line), number_(number) {}

  template <class Add>  // add(key, text of the value)
  void run(Add add) {
    expect('{', "an object for each line");
    if (!take('}')) {
      do {
        skip_space();
        std::string key = text("a name in quotes");
        expect(':', "':' after the name");
        add(std::move(key), value());
      } while (take(','));
      expect('}', "',' or '}'");
    }
    skip_space();
    if (at_ < line_.size()) fail("nothing after the object");
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    Diagnostic diagnostic;
    diagnostic.code = "plot.json";
    diagnostic.file = path_;
    diagnostic.line = number_;
    diagnostic.column = static_cast<int>(at_) + 1;
    diagnostic.message = fmt::format("expected {}", expected);
    diagnostic.source_line = line_;
    throw Error(ErrorKind::input, {diagnostic});
  }

  void skip_space() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, std::string_view what) {
    if (!take(c)) fail(what);
  }

  // Escapes but for quotes and backslashes stay as they are written.
  std::string text(std::string_view what) {
    expect('"', what);
    std::string result;
    for (; at_ < line_.size() && line_[at_] != '"'; ++at_) {
      const bool is_escape = line_[at_] == '\\' && at_ + 1 < line_.size();
      if (is_escape && (line_[at_ + 1] == '"' || line_[at_ + 1] == '\\')) ++at_;
      result += line_[at_];
    }
    expect('"', "a closing quote");
    return result;
  }

  std::string value() {
    skip_space();
    if (at_ < line_.size() && line_[at_] == '"') return text("a string");
    const std::size_t begin = at_;
    while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) != 0 || line_[at_] == '+' ||
                                  line_[at_] == '-' || line_[at_] == '.'))
      ++at_;
    if (at_ == begin) fail("a number, a string or null: objects and arrays are not supported");
    std::string word(line_.substr(begin, at_ - begin));
    return word == "null" ? "nan" : word;
  }

  const std::string& path_;
  std::string_view line_;
  int number_;
  std::size_t at_ = 0;
};

}  // namespace

JsonTable read_json_lines(const std::string& path, std::string_view text) {
  JsonTable table;
  std::vector<std::vector<std::pair<std::size_t, std::string>>> rows;  // column, value
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    auto& row = rows.emplace_back();
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    LineReader(path, line, number).run([&](std::string key, std::string value) {
      const auto found = std::find(table.columns.begin(), table.columns.end(), key);
      row.emplace_back(static_cast<std::size_t>(found - table.columns.begin()), std::move(value));
      if (found == table.columns.end()) table.columns.push_back(std::move(key));
    });
  }
  for (auto& row : rows) {
    std::vector<std::string> cells(table.columns.size());
    for (auto& [column, value] : row) cells[column] = csv_cell(value);
    table.rows += row.empty() ? "\n" : fmt::format("{}\n", fmt::join(cells, ","));
  }
  return table;
}

}  // namespace graphrun::cli
