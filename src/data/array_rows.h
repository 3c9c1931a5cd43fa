// array_rows.h: rows that a program gives as arrays: changed as "transform" says, as rows of the model's source are.
// Contract: an input that lists columns takes them side by side as the table has them, a word as the number of its
// class. Rows of training are fitted to, unless the numbers came with weights or the
// model's own data. Throws Error. Leaves to others: what Session::predict() does (Standardization).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/column_transforms.h"
#include "data/dataset.h"
#include "data/fitted_statistics.h"

namespace graphrun::data {

class ArrayRows {
 public:
  // `block` is the "data" section. `is_fitted`: the numbers are there.
  ArrayRows(const json::Ref& block, std::span<const InputDecl> inputs, std::vector<Pipeline> pipelines,
            ColumnTransforms transforms, const Provenance& provenance, bool is_fitted);

  // The columns of the inputs that list some, for DataSet::columns.
  std::vector<InputColumns> columns(const Provenance& provenance) const;

  // Fits, and changes the columns of Split::original.
  void change(DataSet& set) const;

  // The numbers of a row where "transform" or "missing" changes columns of the input; 0: they do not. Then rows() makes
  // the input's values of them, f64 (rows, ...). `where` begins a message.
  std::int64_t width(std::string_view input) const;
  HostTensor rows(std::string_view input, const HostTensor& given, FittedStatistics& fit,
                  const std::string& where) const;

 private:
  struct Input {
    InputDecl decl;
    Pipeline pipeline;
    std::vector<std::string> columns;  // that it lists; none: it does not, or formulas too
    std::vector<Missing> missing;      // of them
    bool is_changed = false;
    bool is_array = false;  // the only column has several numbers a row
  };
  const Input* find(std::string_view name) const;
  Array side_by_side(const Input& input, const HostTensor& given, const FitContext& table,
                     const std::string& where) const;

  std::vector<Input> inputs_;
  ColumnTransforms transforms_;
  bool is_fitted_;
};

}  // namespace graphrun::data
