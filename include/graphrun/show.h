// show.h: inspect a model without running it: check it, print its canonical form, list and outline its graph.
// Contract: check_model(), canonical_model() and show_model() read the model file and no data; like load_model() they
// throw Error with up to 50 errors of the file. All texts end with a newline and are stable for the same file. Not
// here: data files (load_model() in model.h), memory layout (program.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/session.h"

namespace graphrun {

struct ModelSummary {
  std::string name, description;
  std::optional<std::int64_t> batch;  // nullopt: "all"
  std::vector<std::pair<std::string, TensorType>> inputs, parameters, outputs;
  std::int64_t parameter_elements = 0;
  std::size_t entries = 0;  // graph entries
  std::vector<std::string> warnings;
};

// Parses the file, infers every shape, finds losses without a gradient and plans all phases for the session's executor.
// Assumes a size for splits whose size only the data give.
GRAPHRUN_API ModelSummary check_model(const std::string& path, const LoadOptions& options = {},
                                      const SessionOptions& session = {});

// The model file with every default filled in. Reading it gives the same model; it is its own canonical form.
GRAPHRUN_API std::string canonical_model(const std::string& path, const LoadOptions& options = {});

// Path for LoadOptions::overrides and --set, its value (empty: not set) and the allowed values if there are few.
struct Setting {
  std::string path, value;
  std::vector<std::string> choices;
};
// Settings of constants, data, parameters, graph (layers) and train, in canonical order, without values of more than 80
// characters.
GRAPHRUN_API std::vector<Setting> model_settings(const std::string& path, const LoadOptions& options = {});

// Name of each number of an input: its column, "city=Bern" for a category, or "x3". Empty: no split has rows.
GRAPHRUN_API std::vector<std::string> element_names(const DataSet& data, const std::string& input);

// "did you mean --set train.optimizer.adam.lr=VALUE?": the settings whose last key matches, in any spelling
// ("learning-rate"). Empty if none matches or the file has errors.
GRAPHRUN_API std::string setting_hint(const std::string& path, std::string name, const LoadOptions& options = {});

// Seed of a training run of this model.
GRAPHRUN_API std::uint64_t seed_of(const std::string& path, const LoadOptions& options = {});

// Section "train" of the canonical form, overrides included, on one line; "null" for a model built in code.
GRAPHRUN_API std::string training_settings(const Model& model);

struct ShowOptions {
  bool gradients = false;  // list the nodes of the graph, then those of the gradients
  bool dot = false;        // print a Graphviz digraph of nodes
};
// The graph with the shape of every value.
GRAPHRUN_API std::string show_model(const std::string& path, const LoadOptions& load = {},
                                    const ShowOptions& show = {});
// The whole step: minibatch, forward, gradients, optimizer, records, evaluation. `show.gradients` is implied.
GRAPHRUN_API std::string show_step(const Model& model, const ShowOptions& show = {});

// A named value of the model, as its author sees it.
struct OutlineValue {
  enum class Role : std::uint8_t { input, target, parameter, value, output, metric, loss };
  Role role = Role::value;
  std::string name;
  TensorType type;
  std::string formula;                                    // "relu(x @ W1 + b1)"; empty: given
  std::vector<std::pair<std::string, Shape>> parameters;  // parameters that only this value reads
  std::vector<std::size_t> from;  // operands as indices into `values`, all earlier, without duplicates
};

struct GraphOutline {
  std::string name, description;
  std::int64_t parameter_elements = 0;
  std::vector<OutlineValue> values;  // inputs, shared parameters, then computed values in execution order
};

// The model function: one value per name of the model file, plus unnamed losses, outputs and metrics. Formulas are
// those of the file, or ops for a model built in code. Aliases and named constants are left out. Needs no data
// (DataUse::none). Throws Error.
GRAPHRUN_API GraphOutline graph_outline(const Model& model);
// The phase "train" of show_step(): one value per node except constants; formulas are ops.
GRAPHRUN_API GraphOutline step_outline(const Model& model);

// JSON Schema of model files (models/graphrun.schema.json), generated from the registries.
GRAPHRUN_API std::string model_schema();
// ops.md: every op, function, layer, optimizer, schedule and metric with its attributes, from the registries.
GRAPHRUN_API std::string op_reference();
// kernels.md: the ops that executors run, with operands and attributes, from the same tables.
GRAPHRUN_API std::string kernel_reference();

// A topic is a name used in model files ("adam", "dense", "standardize") or a kind ("optimizers", "ops"). A name of two
// kinds prints both. Throws Error with the nearest topic.
GRAPHRUN_API std::string help_topic(const std::string& topic);
GRAPHRUN_API std::vector<std::string> help_topics();                       // sorted
GRAPHRUN_API std::vector<std::string> help_topics(std::string_view kind);  // topics of one kind, in list order
GRAPHRUN_API std::vector<std::string> help_kinds();                        // topics that are kinds

}  // namespace graphrun
