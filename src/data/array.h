// array.h: what every source yields: named arrays whose dimension 0 counts the rows.
// Contract: values keep the narrow type that the file has (a byte an image's pixel), for a data set is read whole.
// An array is read when an input asks for it: a column of text that nobody uses is no mistake. Where only sizes are
// asked for, an Array has its shape and no values.
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
  std::vector<std::string> columns = {};  // for messages: what they are called, where they come from a table
  bool width_known = true;                // false: without values, and a row may have another size than the shape says

  std::int64_t rows() const { return shape[0]; }
};
using ArrayPtr = std::shared_ptr<const Array>;

// Some rows of an array.
struct Rows {
  std::int64_t begin = 0, count = 0;
  std::shared_ptr<const std::vector<std::int64_t>> order = {};  // row i is (*order)[begin + i] when set

  std::int64_t row(std::int64_t i) const { return order ? (*order)[static_cast<std::size_t>(begin + i)] : begin + i; }
};

// A column of texts, as a file has it.
class Cells {
 public:
  virtual ~Cells() = default;
  virtual std::int64_t rows() const = 0;
  virtual bool is_missing(std::int64_t row) const = 0;
  virtual std::string_view text(std::int64_t row) const = 0;  // without spaces around it
  virtual double number(std::int64_t row) const = 0;          // finite; throws Error with the cell's place
  virtual Error error(std::int64_t row, std::string_view what, std::string hint) const = 0;
  [[noreturn]] void fail(std::int64_t row, std::string_view what, std::string hint = {}) const {
    throw error(row, what, std::move(hint));
  }
};

// What becomes of a missing value.
struct Missing {
  enum class Kind { error, drop, mean, median, most_frequent, value };
  Kind kind = Kind::error;
  std::string value = {};  // Kind::value: a word, or a number as text
  bool is_filled() const { return kind != Kind::error && kind != Kind::drop; }
};

struct NamedArray {
  std::string name;
  json::Ref place;                          // in the model file, for messages
  std::function<ArrayPtr()> read;           // throws Error; where there are cells: as numbers, NaN what is to be filled
  std::optional<Shape> shape = {};          // where it is known before reading
  std::shared_ptr<const Cells> cells = {};  // of a column of texts
  Missing missing = {};                     // of them
  const NamedArray* made_of = nullptr;      // of the table: "sold" of "year(sold)"
};

// A column of cells as such an array of numbers. A cell that is missing and not to be filled is an Error.
NamedArray column_of(std::string name, const json::Ref& place, std::shared_ptr<const Cells> cells, Missing missing);

struct Table {
  std::vector<NamedArray> arrays;
  bool keyed = true;  // arrays are named like inputs; otherwise they are columns to choose from
  std::function<void(const std::vector<std::size_t>&)> use = {};  // when set: told before the first is read which will
  std::unordered_map<std::string, NamedArray> gathered = {};      // made of several of `arrays`, and not listed

  // Of `arrays` the first; all of them are there by then. "year(sold)" is made of the column of dates "sold".
  const NamedArray* find(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  const NamedArray* of_dates(const std::string& name) const;

  mutable std::unordered_map<std::string, std::size_t> index_;    // of `arrays`, from the first search on
  mutable std::unordered_map<std::string, NamedArray> of_dates_;  // by the text of the call
};

// What one source gives: its rows, and the test rows of a file that holds both.
struct Loaded {
  Table rows;
  std::optional<Table> test;
};

}  // namespace graphrun::data
