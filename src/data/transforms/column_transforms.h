// column_transforms.h: "transform" lists under names that are not inputs. They apply to source columns on reading,
// before lists and formulas use them.
// Contract: fitted to the training rows, or loaded with weights. The result of a row is independent of all others. Not
// here: the transform steps (transforms.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/transforms/fitted_statistics.h"
#include "data/transforms/transforms.h"

namespace graphrun::data {

class ColumnTransforms {
 public:
  // Reads a member of the section "transform".
  void read(json::Reader& reader, const json::Ref& section, const json::Member& member);

  // Reports keys that name no column of the training table.
  void check_names(json::Reader& reader, const Table& table, std::span<const InputDecl> inputs) const;

  // Column as numbers, with gaps filled and transforms applied; a one-hot column is (rows, classes). Throws Error.
  ArrayPtr numbers_of(const NamedArray& column, const FitContext& table) const;

  // Shape of the result. Avoids reading the values if possible.
  ArrayPtr shape_of(const NamedArray& column, const FitContext& table) const;

  // Transform list of a column, or null.
  const Pipeline* find(const std::string& column) const;

  // Class names of the column; nothing if it has no classes or they are unknown.
  std::optional<std::vector<std::string>> labels_of(const std::string& column, const Provenance& provenance) const;

 private:
  struct ColumnPipeline {
    const json::Member* member = nullptr;
    Pipeline pipeline;
  };
  json::Ref section_;
  std::map<std::string, ColumnPipeline> entries_;  // keyed by column name
};

}  // namespace graphrun::data
