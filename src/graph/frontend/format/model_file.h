// model_file.h: a model file of format 1 (model-format.md): its declarations and its graph.
// Contract: all errors go to the Reader, with their places; consequential errors are not reported. The constructor
// reads all sections except the graph; build() builds the graph, with a symbolic batch. Handled elsewhere: the "data"
// section and its files (data/), --set (overrides.h), the assembly (session/model.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/format/json_values.h"
#include "graphrun/model.h"

namespace graphrun {

class ModelFile {
 public:
  // `read_array` reads initial values from files. Without it no file is opened and they are zeros.
  explicit ModelFile(json::Reader& reader, ReadArray read_array = {});

  struct Input {
    std::string name;
    Shape sample;  // extents after the batch
    DType dtype = DType::f32;
    json::Ref place;
  };
  const std::vector<Input>& inputs() const { return inputs_; }
  bool inputs_read() const { return inputs_read_; }  // false if a declaration of an input was reported
  const std::optional<json::Ref>& data() const { return data_; }
  std::optional<std::int64_t> batch() const { return batch_; }  // nullopt: "all"
  const json::Ref& batch_place() const { return batch_place_; }

  std::uint64_t seed() const { return train_.seed; }
  // Excludes runtime constants.
  const std::map<std::string, double, std::less<>>& constants() const { return constants_; }

  // Builds the model without its data. The batch size is unset for "all". Incomplete if the Reader has errors.
  Model build() const;

 private:
  friend class ModelBuild;
  friend class Canonical;
  struct Parameter {
    std::string name;
    json::Ref place;
    Shape shape;
    Init init;
    bool decay = true;
    bool trainable = true;
  };
  struct Objective {
    std::string name;
    json::Ref place;
    std::optional<json::Ref> minimize = {}, parameters = {};
    OptimizerSpec optimizer = {};
    std::int64_t every = 1;
  };

  bool looks_like_a_model(json::ObjectReader& root);  // false if it reported an error
  void read_constants(const json::Ref& at);
  void read_inputs(const json::Ref& at);
  void read_parameters(const json::Ref& at, const Fields& fields, std::vector<Parameter>& to);
  void read_graph(const json::Ref& at);
  void read_train(const json::Ref& at);
  void read_optimizer(const json::Ref& at, OptimizerSpec& to);
  void read_objectives(const json::Ref& at);
  std::optional<ScheduleSpec> read_schedule(const json::Ref& at);
  // Returns the table row for the only key of an object, and the place of its value; null if it reported an error.
  template <class Row>
  std::pair<const Row*, json::Ref> read_choice(const json::Ref& at, std::string_view what, std::string_view example,
                                               const std::vector<Row>& table);
  void read_batch(const json::Ref& at);
  void read_max_memory(const json::Ref& at);

  json::Reader& reader_;
  ReadArray read_array_;
  std::string name_;
  struct RuntimeConstant {
    std::string name;
    json::Ref place;
    double value;
  };

  std::map<std::string, double, std::less<>> constants_;
  std::vector<RuntimeConstant> runtime_constants_;
  std::vector<Input> inputs_;
  bool inputs_read_ = false;
  std::vector<Parameter> parameters_, states_;
  std::vector<Objective> objectives_;
  std::vector<json::Ref> graph_;
  bool graph_read_ = false;
  std::optional<json::Ref> data_, outputs_, minimize_, metrics_, early_stopping_, lr_plateau_;
  std::set<std::string, std::less<>> broken_;  // names with a reported declaration
  std::optional<std::int64_t> batch_;
  json::Ref batch_place_;
  TrainSpec train_;
};

// Names of the inputs that no output depends on.
std::vector<std::string> target_names(const Model& model);

}  // namespace graphrun
