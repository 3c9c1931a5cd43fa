// array_text.h: arrays of numbers with their statistics, as a table, as details of one, and as JSON.
// Contract: statistics are of the finite numbers, in double. Leaves to others: where the arrays come from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/terminal/json_writer.h"
#include "graphrun/output_file.h"
#include "graphrun/tensor.h"

namespace graphrun::cli {

struct NamedArray {
  std::string name, dtype;
  Shape shape;
  std::function<HostTensor()> read;
};

// A table with a row for each, below `title` in its first column, and lines for those with numbers that are not finite;
// `detailed`: then of each a histogram, a heat map of matrices, and the first numbers.
std::string arrays_text(const std::string& title, const std::vector<NamedArray>& arrays, bool detailed);

// The members of an object; `whole`: with all numbers.
void write_array(JsonWriter& json, const NamedArray& array, bool whole);

// As NPY, or CSV by the file's name.
void save_array(OutputFile& file, const HostTensor& tensor);

}  // namespace graphrun::cli
