// column_transforms.h: the lists of "transform" under names that are no input's: of columns of the source, which are
// changed as they are read, before lists and formulas see them.
// Contract: fitted to the training rows, or with the numbers that came with weights; the same bits for a row whatever
// rows stand beside it. Leaves to others: the steps themselves (transforms.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/fitted_statistics.h"
#include "data/transforms.h"

namespace graphrun::data {

class ColumnTransforms {
 public:
  // A member of the section "transform".
  void read(json::Reader& reader, const json::Ref& section, const json::Member& member);

  // Reports the keys that name no column of the table, which is that of the training.
  void check_names(json::Reader& reader, const Table& table, std::span<const InputDecl> inputs) const;

  // The numbers of a column: gaps filled, transforms done; a one-hot column is (rows, classes). Throws Error.
  ArrayPtr numbers_of(const NamedArray& column, const FitContext& table) const;

  // Its shape, without reading numbers where that can be.
  ArrayPtr shape_of(const NamedArray& column, const FitContext& table) const;

  // The list of a column; null: it has none.
  const Pipeline* find(const std::string& column) const;

  // The words of its classes; nothing where it has none, or none are known.
  std::optional<std::vector<std::string>> labels_of(const std::string& column, const Provenance& provenance) const;

 private:
  struct ColumnPipeline {
    const json::Member* member = nullptr;
    Pipeline pipeline;
  };
  json::Ref section_;
  std::map<std::string, ColumnPipeline> entries_;  // by column
};

}  // namespace graphrun::data
