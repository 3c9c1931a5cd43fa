// fitted_statistics.h: what the training rows decide for all others: numbers by name, and which columns an input takes.
// Contract: decided once, while the training split is read, or given with weights; then every split, and every row of
// a prediction, is changed by the same numbers, so that no row's values depend on the rows beside it.
// Leaves to others: standardization (transforms.h), the text that weights keep (provenance.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/array.h"
#include "data/files.h"
#include "data/provenance.h"
#include "graphrun/model.h"

namespace graphrun::data {

class FittedStatistics {
 public:
  explicit FittedStatistics(std::uint64_t seed) { provenance.seed = seed; }
  explicit FittedStatistics(const DataSet& weights);  // what came with them; without an origin its seed is 0

  bool is_given() const { return is_given_; }
  bool has_provenance() const { return has_provenance_; }  // of the weights

  const std::vector<double>* find(const std::string& name);
  void set(const std::string& name, std::vector<double> values);  // not when given
  const std::vector<FittedStatistic>& numbers() const { return numbers_; }
  std::vector<std::string> unused() const;  // names that nobody has looked for

  Provenance provenance;

 private:
  bool is_given_ = false, has_provenance_ = false;
  std::vector<FittedStatistic> numbers_;
  std::vector<char> used_;
  std::unordered_map<std::string, std::size_t> index_;  // of numbers_, by name
};

class ColumnTransforms;

// One table while it is read.
struct FitContext {
  FittedStatistics& fit;
  Files& files;                                                       // hears of filled gaps
  const ColumnTransforms* columns = nullptr;                          // null: there are none
  std::function<std::optional<Rows>(std::int64_t total)> train = {};  // of its rows; nothing: not the training's
  std::function<void(const Array& array)> see = {};                   // each array that is read

  // The rows to fit to; nothing when the numbers are there.
  std::optional<Rows> rows_to_fit(std::int64_t total) const {
    return fit.is_given() || !train ? std::nullopt : train(total);
  }
};

}  // namespace graphrun::data
