// show.h: look at a model without running it: check it, say it canonically, list and outline its graph.
// Contract: check_model(), canonical_model() and show_model() read the model file and no data; like load_model() they
// throw Error with every mistake of the file. All texts end with a newline and are stable for the same file.
// Leaves to others: data files (load_model() in model.h), what lies where in memory (program.h).
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
  std::optional<std::int64_t> batch;  // nothing: "all"
  std::vector<std::pair<std::string, TensorType>> inputs, parameters, outputs;
  std::int64_t parameter_elements = 0;
  std::size_t entries = 0;  // of the graph
};

// Parses the file, infers every shape, finds a loss that has no gradient, and plans all phases for the session's
// executor as a run would; a split whose size only its data would tell is assumed.
GRAPHRUN_API ModelSummary check_model(const std::string& path, const LoadOptions& options = {},
                                      const SessionOptions& session = {});

// The model file with every default filled in. Reading it gives the same model, and itself as its canonical form.
GRAPHRUN_API std::string canonical_model(const std::string& path, const LoadOptions& options = {});

// A path that LoadOptions::overrides and --set take, what it holds (empty: nothing), and the words it may hold where
// these are few.
struct Setting {
  std::string path, value;
  std::vector<std::string> choices;
};
// Of the sections constants, data, parameters, graph (layers) and train, in the order of the canonical form; values of
// more than 80 characters are left out.
GRAPHRUN_API std::vector<Setting> model_settings(const std::string& path, const LoadOptions& options = {});

// "did you mean --set train.optimizer.adam.lr=VALUE?": the settings with this last key, spelt as here or elsewhere
// ("learning-rate"); "" when there are none or the file has mistakes.
GRAPHRUN_API std::string setting_hint(const std::string& path, std::string name, const LoadOptions& options = {});

// The seed that a training of it would begin with.
GRAPHRUN_API std::uint64_t seed_of(const std::string& path, const LoadOptions& options = {});

// The "train" of that form, overrides included, on one line; "null" for a model that was built.
GRAPHRUN_API std::string training_settings(const Model& model);

struct ShowOptions {
  bool gradients = false;  // the nodes of the graph one by one, then those of the gradients
  bool dot = false;        // as a Graphviz digraph of nodes
};
// The graph with the shape of every value.
GRAPHRUN_API std::string show_model(const std::string& path, const LoadOptions& load = {},
                                    const ShowOptions& show = {});
// The whole step: minibatch, forward, gradients, optimizer, records, evaluation. `show.gradients` is always meant.
GRAPHRUN_API std::string show_step(const Model& model, const ShowOptions& show = {});

// A value of a graph as the model's author thinks of it.
struct OutlineValue {
  enum class Role : std::uint8_t { input, target, parameter, value, output, metric, loss };
  Role role = Role::value;
  std::string name;
  TensorType type;
  std::string formula;                                    // "relu(x @ W1 + b1)"; empty: it is given
  std::vector<std::pair<std::string, Shape>> parameters;  // that no other value reads
  std::vector<std::size_t> from;  // in `values`: what it is computed from, each earlier and once
};

struct GraphOutline {
  std::string name, description;
  std::int64_t parameter_elements = 0;
  std::vector<OutlineValue> values;  // inputs, parameters that several values read, then in the order of computation
};

// The model function: a value for each name of the model file, and for a loss, an output or a metric without one. The
// formulas are those of the file; a value of a model that was built says the ops that it is made of. A name that is
// another's is left out, and so is that of a number. Needs no data (DataUse::none). Throws Error.
GRAPHRUN_API GraphOutline graph_outline(const Model& model);
// The phase "train" of show_step(): a value for each node that is no number; formulas are ops.
GRAPHRUN_API GraphOutline step_outline(const Model& model);

// The JSON Schema of model files (models/graphrun.schema.json), made from the registries.
GRAPHRUN_API std::string model_schema();
// ops.md: every op, function, layer, optimizer, schedule and metric with its attributes, made from the registries.
GRAPHRUN_API std::string op_reference();
// kernels.md: what executors run: the ops of steps with their operands and attributes, from the same tables.
GRAPHRUN_API std::string kernel_reference();

// A topic is the name of what a model file may say ("adam", "dense", "standardize"), or of a kind of these
// ("optimizers", "ops"); a name of two kinds tells both. Throws Error with the nearest topic. From the same registries.
GRAPHRUN_API std::string help_topic(const std::string& topic);
GRAPHRUN_API std::vector<std::string> help_topics();                       // sorted
GRAPHRUN_API std::vector<std::string> help_topics(std::string_view kind);  // of one kind, in the order of its list
GRAPHRUN_API std::vector<std::string> help_kinds();                        // those that are kinds

}  // namespace graphrun
