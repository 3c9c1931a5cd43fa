// fitted_statistics.h: statistics and column choices fitted to the training rows.
// Contract: fitted once while the training split is read, or loaded with weights. Every split and every predicted row
// uses the same numbers, so the values of a row are independent of all others.
// Not here: standardization (transforms.h), serialization with weights (provenance.h).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/array.h"
#include "data/provenance.h"
#include "data/sources/files.h"
#include "graphrun/model.h"

namespace graphrun::data {

class FittedStatistics {
 public:
  explicit FittedStatistics(std::uint64_t seed) { provenance.seed = seed; }
  explicit FittedStatistics(const DataSet& weights);  // values stored with weights; without provenance the seed is 0

  bool is_given() const { return is_given_; }
  bool has_provenance() const { return has_provenance_; }  // true if the weights include provenance

  const std::vector<double>* find(const std::string& name);
  void set(const std::string& name, std::vector<double> values);  // has no effect if is_given()
  const std::vector<FittedStatistic>& numbers() const { return numbers_; }
  std::vector<std::string> unused() const;  // names never looked up

  Provenance provenance;
  std::set<std::string> accepts_unseen;  // keys of the categories that may lack a value; its class is then -1

 private:
  bool is_given_ = false, has_provenance_ = false;
  std::vector<FittedStatistic> numbers_;
  std::vector<char> used_;
  std::unordered_map<std::string, std::size_t> index_;  // index into numbers_, by name
};

class ColumnTransforms;

// State for reading one table.
struct FitContext {
  FittedStatistics& fit;
  Files& files;                                                       // receives imputation warnings
  const ColumnTransforms* columns = nullptr;                          // null: no column transforms
  std::function<std::optional<Rows>(std::int64_t total)> train = {};  // training rows; nothing: other split
  std::function<void(const Array& array)> see = {};                   // called with each array read

  // Returns the rows to fit to, or nothing if the numbers are already known.
  std::optional<Rows> rows_to_fit(std::int64_t total) const {
    return fit.is_given() || !train ? std::nullopt : train(total);
  }
};

}  // namespace graphrun::data
