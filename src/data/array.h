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
#include <unordered_map>
#include <vector>

#include "base/json_reader.h"
#include "graphrun/types.h"
#include "graphrun/variant.h"

namespace graphrun::data {

struct Array {
  Shape shape;
  Variant<std::vector<double>, std::vector<float>, std::vector<std::int32_t>, std::vector<std::uint8_t>> values;
  std::vector<std::string> columns = {};  // for messages: what they are called, where they come from a table

  std::int64_t rows() const { return shape[0]; }
};
using ArrayPtr = std::shared_ptr<const Array>;

// Some rows of an array.
struct Rows {
  std::int64_t begin = 0, count = 0;
  std::shared_ptr<const std::vector<std::int64_t>> order = {};  // row i is (*order)[begin + i] when set

  std::int64_t row(std::int64_t i) const { return order ? (*order)[static_cast<std::size_t>(begin + i)] : begin + i; }
};

struct NamedArray {
  std::string name;
  json::Place place;                // in the model file, for messages
  std::function<ArrayPtr()> read;   // throws Error
  std::optional<Shape> shape = {};  // where it is known before reading
  bool has_gaps = false;            // NaN is a missing value that the mean of the training rows fills
};

struct Table {
  std::vector<NamedArray> arrays;
  bool keyed = true;  // arrays are named like inputs; otherwise they are columns to choose from
  std::function<void(const std::vector<std::size_t>&)> use = {};  // when set: told before the first is read which will
  std::unordered_map<std::string, NamedArray> gathered = {};      // made of several of `arrays`, and not listed

  const NamedArray* find(const std::string& name) const;  // of `arrays` the first; all of them are there by then
  std::vector<std::string> names() const;

 private:
  mutable std::unordered_map<std::string, std::size_t> index_;  // of `arrays`, from the first search on
};

// What one source gives: its rows, and the test rows of a file that holds both.
struct Loaded {
  Table rows;
  std::optional<Table> test;
};

}  // namespace graphrun::data
