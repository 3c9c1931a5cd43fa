// formulas.h: the formulas of a data section, computed by the graph engine.
// Contract: data/formula.h. A column is an f32 input with rows; what comes out is what a model would compute: the
// formula is one graph, planned and run on the cpu executor over all rows at once.
#pragma once

#include <map>
#include <string>

#include "data/formula.h"

namespace graphrun {

class ModelFormulas final : public data::Formulas {
 public:
  using Constants = std::map<std::string, double, std::less<>>;
  explicit ModelFormulas(const Constants& constants) : constants_(constants) {}

  std::optional<std::vector<const data::NamedArray*>> columns(json::Reader& reader, const json::Place& formula,
                                                              const data::Table& table) const override;
  data::ArrayPtr evaluate(json::Reader& reader, const json::Place& formula,
                          std::span<const data::FormulaColumn> columns) const override;

 private:
  Constants constants_;  // of the model file; a column hides a constant of its name
};

}  // namespace graphrun
