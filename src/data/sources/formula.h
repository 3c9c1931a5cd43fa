// formula.h: interface to the graph engine for columns computed from other columns.
// Contract: a formula is a JSON string in the graph's expression language (model-format.md). Errors are reported at the
// character. Not here: assignment of formulas to inputs (columns.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "data/array.h"

namespace graphrun::data {

struct FormulaColumn {
  std::string name;
  ArrayPtr array;
};

class Formulas {
 public:
  virtual ~Formulas() = default;

  // Returns the arrays that the formula names, or nothing if an error was reported.
  virtual std::optional<std::vector<const NamedArray*>> columns(json::Reader& reader, const json::Ref& formula,
                                                                const Table& table) const = 0;

  // Computes one value or tensor per row. Columns have equal row counts; if they have no values, neither has the
  // result. Null if an error was reported. Aggregates ("mean(a)") are computed over the rows `train` and stored in
  // `aggregates`, or read from it if `train` is nothing.
  virtual ArrayPtr evaluate(json::Reader& reader, const json::Ref& formula, std::span<const FormulaColumn> columns,
                            const std::optional<Rows>& train, std::vector<std::vector<double>>& aggregates) const = 0;
};

}  // namespace graphrun::data
