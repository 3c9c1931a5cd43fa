// array_rows.h: applies "transform" to rows that a program passes as arrays, as to rows of the model's source.
// Contract: an input that lists columns takes them in table order, with categorical values as class numbers. Training
// rows are fitted to, unless the statistics came with weights or the model's own data. Throws Error. Not here:
// Session::predict() (Standardization).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/transforms/column_transforms.h"
#include "data/transforms/fitted_statistics.h"

namespace graphrun::data {

class ArrayRows {
 public:
  // `block` is the "data" section. `is_fitted`: the statistics are already known.
  ArrayRows(const json::Ref& block, std::span<const InputDecl> inputs, std::vector<Pipeline> pipelines,
            ColumnTransforms transforms, const Provenance& provenance, bool is_fitted);

  // Columns of the inputs that list some, for DataSet::columns.
  std::vector<InputColumns> columns(const Provenance& provenance) const;

  // Fits, and transforms the columns of Split::original.
  void change(DataSet& set) const;

  // Numbers per row if "transform" or "missing" changes columns of the input, else 0. If nonzero, rows() converts them
  // to the input's values, f64 (rows, ...). `where` is a prefix for messages.
  std::int64_t width(std::string_view input) const;
  HostTensor rows(std::string_view input, const HostTensor& given, FittedStatistics& fit,
                  const std::string& where) const;

 private:
  struct Input {
    InputDecl decl;
    Pipeline pipeline;
    std::vector<std::string> columns;  // listed columns; empty if it lists none, or formulas too
    std::vector<Missing> missing;      // policy per column
    bool is_changed = false;
    bool is_array = false;  // the only column has several numbers per row
  };
  const Input* find(std::string_view name) const;
  Array side_by_side(const Input& input, const HostTensor& given, const FitContext& table,
                     const std::string& where) const;

  std::vector<Input> inputs_;
  ColumnTransforms transforms_;
  bool is_fitted_;
};

}  // namespace graphrun::data
