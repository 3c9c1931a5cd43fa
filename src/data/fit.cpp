#include "data/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graphrun/error.h"

namespace graphrun::data {

Fit::Fit(const DataSet& weights) : is_given_(true), has_origin_(!weights.origin.empty()), numbers_(weights.fitted) {
  used_.resize(numbers_.size());
  for (std::size_t i = 0; i < numbers_.size(); ++i) index_.emplace(numbers_[i].name, i);
  if (has_origin_) origin = read_origin("the weights' data:origin", weights.origin);
}

const std::vector<double>* Fit::find(const std::string& name) {
  const auto found = index_.find(name);
  if (found == index_.end()) return nullptr;
  used_[found->second] = 1;
  return &numbers_[found->second].values;
}

void Fit::set(const std::string& name, std::vector<double> values) {
  if (find(name)) return;  // a column that two inputs take
  index_.emplace(name, numbers_.size());
  numbers_.push_back({name, std::move(values)});
  used_.push_back(1);
}

std::vector<std::string> Fit::unused() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (!used_[i]) names.push_back(numbers_[i].name);
  }
  return names;
}

ArrayPtr fill_gaps(const std::string& column, const ArrayPtr& array, const TableFit& table) {
  const std::string name = column + ":mean";
  const auto& values = std::get<std::vector<double>>(array->values);
  if (const std::optional<Rows> train = table.rows_to_fit(array->rows())) {
    double sum = 0;
    std::int64_t present = 0;
    for (std::int64_t i = 0; i < train->count; ++i) {
      const double value = values[static_cast<std::size_t>(train->row(i))];
      if (std::isnan(value)) continue;
      sum += value;
      ++present;
    }
    if (present == 0) {
      throw Error(ErrorKind::input, "data.csv", fmt::format("column '{}' has no value in the training rows", column));
    }
    table.fit.set(name, {sum / static_cast<double>(present)});
  }
  const std::vector<double>* mean = table.fit.find(name);
  const auto gaps = std::count_if(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  if (gaps == 0) return array;
  if (!mean) {
    throw Error(ErrorKind::input, "data.csv",
                fmt::format("column '{}' lacks {} value{}, and no mean of it was fitted to the training rows", column,
                            gaps, gaps == 1 ? "" : "s"),
                table.fit.is_given() ? "the weights must come from a training with \"missing\": \"mean\""
                                     : "the source of the training split must say \"missing\": \"mean\" too");
  }
  auto filled = std::make_shared<Array>(*array);
  for (double& value : std::get<std::vector<double>>(filled->values)) {
    if (std::isnan(value)) value = mean->front();
  }
  table.files.warn(fmt::format("column '{}': {} missing value{} became the mean of the training rows, {}", column, gaps,
                               gaps == 1 ? "" : "s", mean->front()));
  return filled;
}

}  // namespace graphrun::data
