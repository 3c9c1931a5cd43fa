#include "data/transforms/fitted_statistics.h"

namespace graphrun::data {

FittedStatistics::FittedStatistics(const DataSet& weights)
    : is_given_(true), has_provenance_(!weights.provenance.empty()), numbers_(weights.fitted) {
  used_.resize(numbers_.size());
  for (std::size_t i = 0; i < numbers_.size(); ++i) index_.emplace(numbers_[i].name, i);
  if (has_provenance_) provenance = read_provenance("the weights' data:origin", weights.provenance);
}

const std::vector<double>* FittedStatistics::find(const std::string& name) {
  const auto found = index_.find(name);
  if (found == index_.end()) return nullptr;
  used_[found->second] = 1;
  return &numbers_[found->second].values;
}

void FittedStatistics::set(const std::string& name, std::vector<double> values) {
  if (find(name)) return;  // shared by two inputs
  index_.emplace(name, numbers_.size());
  numbers_.push_back({name, std::move(values)});
  used_.push_back(1);
}

std::vector<std::string> FittedStatistics::unused() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (!used_[i]) names.push_back(numbers_[i].name);
  }
  return names;
}

}  // namespace graphrun::data
