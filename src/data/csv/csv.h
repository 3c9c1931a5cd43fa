// csv.h: comma-separated values (RFC 4180), with escaped quotes, any line ending, a byte order mark, spaces around
// quotes and Excel's first line "sep=;".
// Contract: every record has as many fields as the first; empty lines and comments are skipped. Delimiters at the end
// of every line add no column. A numeric header is rejected; column names may repeat. Errors include line and column;
// invalid UTF-8 is an error. Field and column storage counts against input_limit.h, as a file of commas needs many
// times its size. Not here: interpretation of fields (text_table.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/csv/text_table.h"

namespace graphrun::data {

// How the file is written.
struct Dialect {
  bool header = true;        // whether the first line names the columns
  char delimiter = ',';      // ' ': any number of blanks and tabs
  std::string comment = {};  // prefix of comment lines; empty: no comments
  Notation notation = {};
  std::vector<std::string> names = {};  // column names, instead of those of the header
  std::int64_t libsvm = -1;             // features of a libsvm file; 0: as many as it has; -1: a CSV file
  std::size_t rows_before = 0;          // rows of the stream before this chunk, for messages
  int lines_before = 0;
};

// Excel's first line "sep=;": its delimiter, and the offset of the next line.
struct SepLine {
  char delimiter = ',';
  std::size_t end = 0;
};
std::optional<SepLine> sep_line(std::string_view text);

// Whether the first row is a label and features, as libsvm writes them.
bool is_libsvm(std::string_view text);

// Converts a libsvm file to CSV with the columns c0 (the label), c1, c2, ..., and names them in the dialect. Keeps
// lines, for messages. Throws Error with the line.
std::string csv_of_libsvm(const std::string& path, std::string_view text, Dialect& dialect);

class Csv final : public TextTable {
 public:
  // `on_progress` receives the fraction of bytes parsed.
  Csv(std::string path, std::string text, Dialect dialect, const std::function<void(double done)>& on_progress = {});

  std::size_t rows() const override { return fields_.size() / width_; }
  std::string_view text(std::size_t row, std::size_t column) const override { return content(field(row, column)); }
  bool is_repeated(std::size_t column) const override { return repeated_.contains(names_[column]); }
  Error repeated_error(std::size_t column) const override;
  // Suggests another delimiter if the header is one column; empty if none fits.
  std::string delimiter_hint() const;
  std::string other_delimiter() const;  // sign in the header of a single column: "," or "\\t"; may be empty

  Error error_at(std::size_t row, std::size_t column, std::string_view what, std::string hint) const override;

 private:
  struct Field {
    std::uint64_t begin = 0;   // offset in text_, without quotes
    std::uint32_t length = 0;  // length in text_, with escaped quotes collapsed
    bool quoted = false;
  };
  void make_room(std::vector<Field>& fields, std::size_t more) const;
  std::size_t read_field(std::size_t at, Field& field);
  std::size_t skip_blanks(std::size_t at) const;
  bool ends_field(char c) const { return ends_[static_cast<unsigned char>(c)]; }
  std::size_t read_record(std::size_t at, std::vector<Field>& record);
  bool is_comment(std::size_t at) const;
  void take_width(const std::vector<Field>& record);
  bool is_blank(const std::vector<Field>& fields, std::size_t first, std::size_t step) const;
  void take_header(const std::vector<Field>& record);
  void reject_numbers(const std::vector<Field>& record) const;
  std::string_view content(const Field& field) const;
  const Field& field(std::size_t row, std::size_t column) const { return fields_[row * width_ + column]; }
  Error error(std::size_t offset, std::string message, std::string hint) const;
  [[noreturn]] void fail(std::size_t offset, std::string message, std::string hint = {}) const {
    throw error(offset, std::move(message), std::move(hint));
  }

  std::string path_, text_;
  Dialect dialect_;
  std::array<bool, 256> ends_{};  // characters that end an unquoted field
  std::uint64_t limit_;
  std::unordered_map<std::string, std::size_t> repeated_;  // repeated names, with the index of the second column
  std::vector<Field> fields_;                              // row-major
  std::size_t width_ = 0;  // fields per row; more than names_ if rows end with delimiters
};

}  // namespace graphrun::data
