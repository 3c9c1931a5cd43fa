#include "cli/results/split_rows.h"

#include <fmt/format.h>

#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

HostTensor in_original_units(const HostTensor& stored, const Standardization& fitted) {
  HostTensor original(DType::f64, stored.shape());
  const std::span<double> to = original.elements<double>();
  const std::vector<double> from = as_doubles(stored);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t column = i % fitted.scale.size();
    to[i] = invert_log(fitted.log, from[i] * fitted.scale[column] + fitted.shift[column]);
  }
  return original;
}

}  // namespace

const HostTensor* SplitRows::find(std::string_view input) const {
  for (const auto& [name, tensor] : inputs) {
    if (name == input) return &tensor;
  }
  return nullptr;
}

SplitRows predicted_rows(Session& session, const std::string& name) {
  const DataSet& data = session.model().data;
  const Split* split = data.find(name);
  if (split == nullptr) {
    std::vector<std::string> names;
    for (const Split& one : data.splits) names.push_back(one.name);
    throw Error(ErrorKind::input, "plot.split", fmt::format("the model's data has no split '{}'", name),
                fmt::format("splits: {}", fmt::join(names, ", ")));
  }
  if (split->columns.empty() || split->samples() == 0)
    throw Error(ErrorKind::input, "plot.split", fmt::format("the split '{}' has no rows", name));
  SplitRows rows;
  for (const auto& [input, column] : split->columns) {
    Standardization fitted{input, {0}, {1}};
    for (const Standardization& one : data.standardizations) {
      if (one.input == input) fitted = one;
    }  // f64, because predict_all() applies column transforms to f32 rows
    rows.inputs.emplace_back(input, is_float(column.dtype()) ? in_original_units(column, fitted) : column);
  }
  rows.predictions = session.predict_all(rows.inputs);
  return rows;
}

}  // namespace graphrun::cli
