// gather.h: combines table columns into arrays with several numbers per row: "x" from the columns x0, x1, x2.
// Contract: column naming follows data.md, "Predictions".
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "data/array.h"

namespace graphrun::data {

// Array that an input takes whole: its name (empty: the input takes lists or formulas) and the shape of a row.
struct Taken {
  std::string array;
  Shape sample;
};

// Adds the arrays that inputs take whole, and those implied by column names, for lists and formulas. Reports missing
// columns.
void gather(json::Reader& reader, const json::Ref& at, Table& table, const std::vector<Taken>& taken);

}  // namespace graphrun::data
