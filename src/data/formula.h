// formula.h: what the data section asks of the graph engine: columns computed from columns.
// Contract: a formula is a JSON string in the expression language of the graph (model-format.md); mistakes are
// reported at their character. Leaves to others: which inputs have one (columns.h).
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

  // The arrays of the table that the formula names; nothing when something was reported.
  virtual std::optional<std::vector<const NamedArray*>> columns(json::Reader& reader, const json::Ref& formula,
                                                                const Table& table) const = 0;

  // One value, or one tensor, for each row. The columns have equally many rows; without their values the result has
  // none. Null when something was reported. Aggregates ("mean(a)") are those of the rows `train`, and go to
  // `aggregates`; where `train` is nothing they are taken from there.
  virtual ArrayPtr evaluate(json::Reader& reader, const json::Ref& formula, std::span<const FormulaColumn> columns,
                            const std::optional<Rows>& train, std::vector<std::vector<double>>& aggregates) const = 0;
};

}  // namespace graphrun::data
