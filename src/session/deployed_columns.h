// deployed_columns.h: a model whose graph starts from the columns of its table, for exports.
// Contract: the graph applies the transforms of columns, imputation, categories, dates and formulas, in double, with
// the statistics of the weights. Each column is an input (batch): f64, or i32 for the code of a category. Throws Error
// with the name of a transform that has no such form. Not here: reading tables (src/data), exports (src/export).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "graphrun/deployment.h"
#include "graphrun/model.h"
#include "session/session_access.h"

namespace graphrun {

struct ColumnModel {
  Model model;
  struct Column {
    std::string name;  // in the table; of a class: the target
    DeployedColumn doc;
    Standardization units = {};  // its usual range, for sample inputs
  };
  std::map<std::string, Column> columns;  // key: name in the graph
};

// Nothing if no input is preprocessed by column and no output has class labels.
std::optional<ColumnModel> with_columns(SessionAccess::Impl& session);

}  // namespace graphrun
