// array_text.h: numeric arrays with statistics, as a table, in detail, and as JSON.
// Contract: statistics cover the finite elements, in double precision. Not handled here: source of the arrays.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "graphrun/output_file.h"
#include "graphrun/tensor.h"

namespace graphrun::cli {

struct NamedArray {
  std::string name, dtype;
  Shape shape;
  std::function<HostTensor()> read;
};

// Table with a row per array and `title` above its first column, then a line per array with non-finite elements.
// `detailed` adds a histogram, a heat map (of matrices) and the first elements of each.
std::string arrays_text(const std::string& title, const std::vector<NamedArray>& arrays, bool detailed);

// Writes the members of an object; `whole` includes all elements.
void write_array(JsonWriter& json, const NamedArray& array, bool whole);

// Writes NPY or CSV, by file extension.
void save_array(OutputFile& file, const HostTensor& tensor);

}  // namespace graphrun::cli
