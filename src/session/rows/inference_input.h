// inference_input.h: rows of a file that is not the model's own, as inputs for predictions and evaluations.
// Contract: each input takes from the file what it takes from the model's own source, by names (data.md,
// "Predictions"); what was fitted comes from weights. A row's values depend on that row alone. The model is read once,
// then rows as often as there are some. Throws Error. Leaves to others: what the file is (row_format.h), opening it
// (row_reader.cpp).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "data/fitted_statistics.h"
#include "data/sources.h"
#include "graphrun/model.h"
#include "session/rows/row_format.h"

namespace graphrun {

class InferenceInput {
 public:
  // For predictions: the inputs that outputs depend on, f32 as f64, in original units. For evaluations: all inputs,
  // changed as those of the training were.
  enum class Purpose { predict, evaluate };

  InferenceInput(const std::string& model, const LoadOptions& given, Purpose purpose);

  const std::string& batch_dependent_output() const { return batch_dependent_; }  // empty: there is none
  data::Dialect dialect(const std::string& path) const;                           // of a CSV file

  struct Read {
    std::vector<std::pair<std::string, HostTensor>> inputs;
    std::vector<std::vector<std::string>> kept;  // by name, then by row
    std::vector<std::string> warnings;
    std::vector<Standardization> standardizations = {};  // of evaluations: what was done to the numbers
  };
  // `path` is that of the user; `name` what is opened: the same, or a copy of a pipe.
  Read read(const std::string& path, const std::string& name, RowFormat format, const std::optional<data::Chunk>& chunk,
            const std::vector<std::string>& keep);

  const std::vector<Standardization>& standardizations() const { return weights_.standardizations; }
  const DataSet& weights() const { return weights_; }

 private:
  InferenceInput(const std::string& model, Purpose purpose, const LoadOptions& options);  // those of reading_once()
  bool is_wanted(const std::string& name) const;
  json::Value choice_of(const std::string& input) const;
  std::vector<std::string> array_names(const json::Value& choice) const;
  json::Value split_of(const std::string& path, RowFormat format) const;
  json::Value transforms() const;
  void add_options(json::Value& split, const std::string& path, RowFormat format) const;

  Purpose purpose_;
  std::vector<InputDecl> inputs_;
  std::set<std::string, std::less<>> others_;  // names of the other inputs
  std::map<std::string, double, std::less<>> constants_;
  std::string batch_dependent_;
  DataSet weights_;
  data::FittedStatistics fit_;
  json::Document document_;
  // What the model says of the rows that it was trained with.
  const json::Value* source_ = nullptr;  // the object that names it, with what stands beside
  const data::SourceFormat* format_ = nullptr;
  const json::Value* transform_ = nullptr;
};

}  // namespace graphrun
