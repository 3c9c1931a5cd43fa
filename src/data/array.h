// array.h: interface to all data sources: named arrays with rows along dimension 0.
// Contract: values keep the narrow type of the file (a byte per pixel), because a data set is read whole. An array is
// read when an input requests it, so an unused text column is not an error. If only sizes are requested, an Array has a
// shape and no values, but bytes keep their type.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "graphrun/error.h"
#include "graphrun/types.h"
#include "graphrun/variant.h"

namespace graphrun::data {

struct Array {
  Shape shape;
  Variant<std::vector<double>, std::vector<float>, std::vector<std::int32_t>, std::vector<std::uint8_t>> values;
  std::vector<std::string> columns = {};  // column names for messages; set if the array comes from a table
  bool width_known = true;                // false: no values were read, and the row size may differ from the shape

  bool has_bytes() const { return std::holds_alternative<std::vector<std::uint8_t>>(values); }
  std::int64_t rows() const { return shape[0]; }
};
using ArrayPtr = std::shared_ptr<const Array>;

// A subset of an array's rows.
struct Rows {
  std::int64_t begin = 0, count = 0;
  std::shared_ptr<const std::vector<std::int64_t>> order = {};  // row i is (*order)[begin + i] when set

  std::int64_t row(std::int64_t i) const { return order ? (*order)[static_cast<std::size_t>(begin + i)] : begin + i; }
};

// A column of text cells, as stored in the file.
class Cells {
 public:
  virtual ~Cells() = default;
  virtual std::int64_t rows() const = 0;
  virtual bool is_missing(std::int64_t row) const = 0;
  virtual std::string_view text(std::int64_t row) const = 0;  // without spaces around it
  virtual double number(std::int64_t row) const = 0;          // finite; throws Error with the position of the cell
  virtual Error error(std::int64_t row, std::string_view what, std::string hint) const = 0;
  [[noreturn]] void fail(std::int64_t row, std::string_view what, std::string hint = {}) const {
    throw error(row, what, std::move(hint));
  }
};

// Order of day and month in dates such as 03/04/2024. unknown: shown by the other dates of the column.
enum class DateOrder { unknown, day_first, month_first };

// Policy for missing values.
struct Missing {
  enum class Kind { error, drop, mean, median, most_frequent, value };
  Kind kind = Kind::error;
  std::string value = {};  // Kind::value: a categorical value, or a number as text
  bool is_other = false;   // for a file other than the model's
  bool is_filled() const { return kind != Kind::error && kind != Kind::drop; }
};

struct NamedArray {
  std::string name;
  json::Ref place;                          // in the model file, for messages
  std::function<ArrayPtr()> read;           // throws Error; from cells: numbers, with NaN for each gap to fill
  std::optional<Shape> shape = {};          // set if known before reading
  std::shared_ptr<const Cells> cells = {};  // set for a text column
  Missing missing = {};                     // policy for missing cells
  const NamedArray* made_of = nullptr;      // source column in the table: "sold" for "year(sold)"
  bool has_bytes = false;                   // with `shape`: whether the values are bytes
};

// Wraps a text column as an array of numbers. A missing cell with no fill policy is an Error.
NamedArray column_of(std::string name, const json::Ref& place, std::shared_ptr<const Cells> cells, Missing missing);

struct Table {
  std::vector<NamedArray> arrays;
  bool keyed = true;  // arrays are named like inputs; otherwise they are columns to choose from
  std::function<void(const std::vector<std::size_t>&)> use = {};  // if set: first gets the indices of arrays to read
  std::unordered_map<std::string, NamedArray> gathered = {};      // built from several of `arrays`; not listed
  DateOrder date_order = DateOrder::unknown;

  // First array of that name; call it once `arrays` is complete. "year(sold)" is derived from the date column "sold".
  const NamedArray* find(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  const NamedArray* of_dates(const std::string& name) const;

  mutable std::unordered_map<std::string, std::size_t> index_;    // index into `arrays`, built by the first search
  mutable std::unordered_map<std::string, NamedArray> of_dates_;  // keyed by call text: "year(sold)"
};

// Result of one source: its rows, and the test rows if the file has both.
struct Loaded {
  Table rows;
  std::optional<Table> test;
};

}  // namespace graphrun::data
