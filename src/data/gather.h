// gather.h: arrays of several numbers a row from a table of columns: "x" from the columns x0, x1, x2.
// Contract: how the columns of an array are called is data.md, "Predictions".
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "data/array.h"

namespace graphrun::data {

// What an input takes whole: the name of an array (empty: it takes lists or formulas) and the shape of a row.
struct Taken {
  std::string array;
  Shape sample;
};

// Adds the arrays that inputs take whole, and those that the names of columns tell, for lists and formulas. Reports a
// column that is missing.
void gather(json::Reader& reader, const json::Ref& at, Table& table, const std::vector<Taken>& taken);

}  // namespace graphrun::data
