// formulas.h: the formulas of a data section, computed by the graph engine.
// Contract: data/formula.h. A column is an input with rows, f64 where the source has doubles or 32-bit integers (the
// formula is then computed in double, by the ref executor) and else f32 (by cpu). The formula is one graph, planned and
// run over all rows at once; its aggregates are inputs of that graph, so that a row's value is the same bits whatever
// the rows beside it.
#pragma once

#include <map>
#include <string>

#include "data/formula.h"

namespace graphrun {

class ModelFormulas final : public data::Formulas {
 public:
  using Constants = std::map<std::string, double, std::less<>>;
  // `is_prediction`: numbers drawn at random are refused.
  explicit ModelFormulas(const Constants& constants, bool is_prediction = false)
      : constants_(constants), is_prediction_(is_prediction) {}

  std::optional<std::vector<const data::NamedArray*>> columns(json::Reader& reader, const json::Ref& formula,
                                                              const data::Table& table) const override;
  data::ArrayPtr evaluate(json::Reader& reader, const json::Ref& formula, std::span<const data::FormulaColumn> given,
                          const std::optional<data::Rows>& train,
                          std::vector<std::vector<double>>& aggregates) const override;

 private:
  Constants constants_;  // of the model file; a column hides a constant of its name
  bool is_prediction_;
};

}  // namespace graphrun
