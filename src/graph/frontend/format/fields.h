// fields.h: the keys of a model file, one row each: reading, the canonical form, the JSON Schema and the tables of
// model-format.md follow from it.
// Contract: a key with a plain value is read into the member of TrainSpec that its row names, and its default is what
// that member holds from the start. What else a key may hold is read in model_file.cpp, written in canonical.cpp and
// told in session/inspection/schema.cpp. Leaves to others: the section "data" (src/data/).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "graph/ir/attributes.h"
#include "graphrun/model.h"

namespace graphrun {

struct Field : ir::AttrDef {
  std::string_view hint = {};       // of a required key: told when it is missing
  std::string_view otherwise = {};  // what leaving out a key that is not plain means, as the page writes it
  AttrValue (*get)(const Field& field, const TrainSpec& from) = nullptr;  // null: it is not plain
  void (*set)(const Field& field, const AttrValue& value, TrainSpec& to) = nullptr;

  bool TrainSpec::*runtime = nullptr;  // of a number that may be {"runtime": 0.1}: whether it is; 0 is then allowed

  // Whether leaving it out is the same as giving some value: the fallback.
  bool has_default() const { return get != nullptr && fits(*this, fallback); }
};
using Fields = std::vector<Field>;

const Fields& file_fields();
const Fields& input_fields();
const Fields& parameter_fields();
const Fields& state_fields();
const Fields& train_fields();
const Fields& objective_fields();
// Of TrainSpec's parts of these names, which have to be there when their fields are read.
const Fields& early_stopping_fields();
const Fields& lr_plateau_fields();

// Reads the plain fields into `plain`; all are known to the object from then on, and required ones that are missing are
// reported.
void read_fields(json::Reader& reader, json::ObjectReader& object, const Fields& fields, TrainSpec& plain);

std::string default_text(const Field& field);  // in Markdown: "`1`", "none", "required"
std::string key_table(const Fields& fields);   // of model-format.md, in Markdown

}  // namespace graphrun
