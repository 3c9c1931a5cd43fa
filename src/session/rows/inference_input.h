// inference_input.h: rows of a file other than the model's own, as inputs for predictions and evaluations.
// Contract: each input takes the same names from the file as from the model's own source (data.md, "Predictions").
// Fitted statistics come from weights, so the values of a row depend on that row alone. The model is read once, rows
// any number of times. Throws Error. Not here: format detection (row_format.h), opening the file (row_reader.cpp).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/csv/csv.h"
#include "data/dataset.h"
#include "data/sources/sources.h"
#include "data/splits/gather.h"
#include "data/transforms/fitted_statistics.h"
#include "graphrun/model.h"
#include "session/rows/row_format.h"

namespace graphrun {

struct ModelFile;
std::vector<InputDecl> input_declarations(const ModelFile& file, bool accepts_unseen);

class InferenceInput {
 public:
  // predict: inputs that outputs depend on, f32 as f64, in original units. evaluate: all inputs, transformed as in
  // training.
  enum class Purpose { predict, evaluate };

  InferenceInput(const std::string& model, const LoadOptions& given, Purpose purpose);

  const std::string& batch_dependent_output() const { return batch_dependent_; }  // empty if there is none
  data::Dialect dialect(const std::string& path) const;                           // for a CSV file

  struct Read {
    std::vector<std::pair<std::string, HostTensor>> inputs;
    std::vector<std::vector<std::string>> kept;  // indexed by name, then by row
    std::vector<std::string> warnings;
    std::vector<std::pair<std::string, std::int64_t>> far = {};  // InputRows::far
    std::vector<Standardization> standardizations = {};          // for evaluations: applied transforms
    std::vector<WindowedInput> windows = {};                     // for evaluations
    std::int64_t target_row = 0;                                 // InputRows::target_row
  };
  // `path`: the user's path. `name`: the file to open, which is `path` or a copy of a pipe.
  Read read(const std::string& path, const std::string& name, RowFormat format, const std::optional<data::Chunk>& chunk,
            const std::vector<std::string>& keep);

  std::int64_t window_length() const;  // rows of a sample; 0: the model has no windows
  std::vector<InputRows::Feed> feeds() const;

  const std::vector<Standardization>& standardizations() const { return weights_.standardizations; }
  const DataSet& weights() const { return weights_; }

 private:
  InferenceInput(const std::string& model, Purpose purpose, const LoadOptions& options);  // options from reading_once()
  void count_far(Read& read, const data::Files& files) const;
  Error with_columns(const Error& error) const;
  void prefer_columns(json::Value& split, const data::Table& table, std::vector<data::Taken>& taken) const;
  bool is_wanted(const std::string& name) const;
  json::Value choice_of(const std::string& input) const;
  std::vector<std::string> array_names(const json::Value& choice) const;
  json::Value split_of(const std::string& path, RowFormat format) const;
  json::Value transforms() const;
  void add_options(json::Value& split, const std::string& path, RowFormat format) const;

  Purpose purpose_;
  std::vector<InputDecl> inputs_;
  std::set<std::string, std::less<>> others_;  // names of the inputs not read
  std::map<std::string, double, std::less<>> constants_;
  Precision precision_ = Precision::fp32;
  std::string batch_dependent_;
  DataSet weights_;
  data::FittedStatistics fit_;
  json::Document document_;
  // Data section of the model file, as used for its training rows.
  const json::Value* source_ = nullptr;  // object that names the source, with sibling keys
  const data::SourceFormat* format_ = nullptr;
  const json::Value* transform_ = nullptr;
};

}  // namespace graphrun
