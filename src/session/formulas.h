// formulas.h: computes the formulas of a data section with the graph engine.
// Contract: that of data/formula.h. A column is an input with rows: f64 if the source has doubles or 32-bit integers,
// or if the model is in fp64 (computed in double by the ref executor), else f32 (by cpu). Each formula is one graph,
// planned and run over all rows at once. Its aggregates are graph inputs, so the bits of a row's result are independent
// of all others.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/sources/formula.h"
#include "graph/ops/op_def.h"

namespace graphrun {

class ModelFormulas final : public data::Formulas {
 public:
  using Constants = std::map<std::string, double, std::less<>>;
  // `is_prediction`: rejects random numbers.
  explicit ModelFormulas(const Constants& constants, Precision precision, bool is_prediction = false)
      : constants_(constants), is_wide_(precision == Precision::fp64), is_prediction_(is_prediction) {}

  std::optional<std::vector<const data::NamedArray*>> columns(json::Reader& reader, const json::Ref& formula,
                                                              const data::Table& table) const override;
  data::ArrayPtr evaluate(json::Reader& reader, const json::Ref& formula, std::span<const data::FormulaColumn> given,
                          const std::optional<data::Rows>& train,
                          std::vector<std::vector<double>>& aggregates) const override;

  // Adds the formula to the graph of its columns, which are f64 (batch) or (batch, k). Throws Error.
  Var build(const std::string& formula, std::span<const std::pair<std::string, Var>> columns,
            const std::vector<std::vector<double>>& aggregates) const;

 private:
  Constants constants_;  // constants of the model file; a column hides a constant of its name
  bool is_wide_;
  bool is_prediction_;
};

}  // namespace graphrun
