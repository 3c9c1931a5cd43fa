// model_file.h: reads a model file of format 1 (model-format.md), and writes its canonical form.
// Contract: all errors go to the Reader, with their places; consequential errors are not reported. Handled elsewhere:
// the "data" section and its files (data/), --set (overrides.h), the assembly (session/model.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "graph/frontend/format/json_values.h"
#include "graphrun/model.h"

namespace graphrun {

struct ModelFile {
  struct Input {
    std::string name;
    Shape sample;              // extents after the batch
    DType dtype = DType::f32;  // f64 instead with Precision::fp64; the graph's input stays f32
  };

  Model model;  // without its data; its batch is symbolic. Incomplete if the Reader has errors.
  std::vector<Input> inputs = {};
  bool inputs_read = false;  // false if a declaration of an input was reported
  bool graph_read = false;   // if not, the names of the graph are unknown
  bool outputs_read = false;
  std::optional<json::Ref> data = {};
  std::optional<std::int64_t> batch = {};  // nullopt: "all"
  json::Ref batch_place = {};
};

// `read_array` reads initial values from files. Without it no file is opened and they are zeros.
ModelFile read_model_file(json::Reader& reader, const ReadArray& read_array = {});

// Names of the inputs that no output depends on.
std::vector<std::string> target_names(const Model& model);

// The canonical form of a model file, with every default filled in. `model`: what read_model_file() read, without
// errors. Reading the canonical form gives the same model, and its canonical form is itself. Data sources are copied as
// given. base/json_text.h does the layout.
json::Value canonical(json::Reader& reader, Model& model);

// Formats one entry of the graph for listings: "h = tanh(x @ W)", "h2 = dense(h, units=10, ...)".
std::string entry_text(const json::Value& canonical_entry);
// The call of an entry that is not a string: "dense(h, units=10, ...)".
std::string call_text(const json::Value& canonical_entry, bool with_inits);

}  // namespace graphrun
