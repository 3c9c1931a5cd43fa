// fields.h: table of the keys of a model file, from which reading, the canonical form, the JSON Schema and the tables
// of model-format.md derive. Contract: a key with a plain value is read into the member of TrainSpec in its row; its
// default is the initial value of that member. Other values are read in model_file.cpp, written in canonical.cpp and
// described in session/inspection/schema.cpp. The section "data" is defined in src/data/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "graph/ir/attributes.h"
#include "graphrun/model.h"

namespace graphrun {

struct Field : ir::AttrDef {
  std::string_view hint = {};       // hint of the error if a required key is missing
  std::string_view otherwise = {};  // default of a key that is not plain, as documented
  AttrValue (*get)(const Field& field, const TrainSpec& from) = nullptr;  // null: not plain
  void (*set)(const Field& field, const AttrValue& value, TrainSpec& to) = nullptr;

  bool TrainSpec::*runtime = nullptr;  // true for {"runtime": 0.1}, which may be 0; null: not supported

  // Whether leaving the key out is equivalent to giving the fallback.
  bool has_default() const { return get != nullptr && fits(*this, fallback); }
};
using Fields = std::vector<Field>;

const Fields& file_fields();
const Fields& input_fields();
const Fields& parameter_fields();
const Fields& state_fields();
const Fields& train_fields();
const Fields& objective_fields();
// Fields of the optional members of TrainSpec with these names, which must be set before their fields are read.
const Fields& early_stopping_fields();
const Fields& lr_plateau_fields();
const Fields& stop_at_fields();
const Fields& threshold_fields();

// Reads the plain fields into `plain`, marks all fields as known to `object`, and reports missing required ones.
void read_fields(json::Reader& reader, json::ObjectReader& object, const Fields& fields, TrainSpec& plain);

std::string default_text(const Field& field);  // in Markdown: "`1`", "none", "required"
std::string key_table(const Fields& fields);   // Markdown table for model-format.md

}  // namespace graphrun
