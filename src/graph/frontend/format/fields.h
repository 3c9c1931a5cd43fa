// fields.h: the keys of a model file, one row each: reading, the canonical form, the JSON Schema and the tables of
// docs/model-format.md follow from it.
// Contract: a key with a plain value is read into the member of TrainSpec that its row names, and its default is what
// that member holds from the start. A key of another form has its reader in model_file.cpp and its schema in
// session/inspection/schema.cpp, chosen by a switch over the forms. Leaves to others: the section "data" (src/data/).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "graph/ir/attributes.h"
#include "graphrun/model.h"

namespace graphrun {

enum class Form : std::uint8_t {
  plain,  // true or false, a number or a word, as the definition says
  text,   // any string
  // Of the file:
  format,
  name,
  constants,
  data,
  inputs,
  parameters,
  graph,
  outputs,
  train,
  // Of an input or a parameter:
  dtype,
  batch_shape,
  shape,
  init,
  decay,
  // Of "train":
  loss,
  metrics,
  optimizer,
  batch,
};

struct Field : ir::AttrDef {
  Form form = Form::plain;
  std::string_view hint = {};       // of a required key: told when it is missing
  std::string_view otherwise = {};  // what leaving out a key that is not plain means, as the page writes it
  AttrValue (*get)(const Field& field, const TrainSpec& from) = nullptr;  // of Form::plain
  void (*set)(const Field& field, const AttrValue& value, TrainSpec& to) = nullptr;

  // Whether leaving it out is the same as giving some value: the fallback.
  bool has_default() const { return form == Form::plain && fits(*this, fallback); }
};
using Fields = std::vector<Field>;

const Fields& file_fields();
const Fields& input_fields();
const Fields& parameter_fields();
const Fields& train_fields();

// Reads the plain fields into `plain` and hands each other one that is there to `read`. Reports required keys that are
// missing; unknown ones are the caller's to finish().
void read_fields(json::Reader& reader, json::ObjectReader& object, const Fields& fields, TrainSpec& plain,
                 const std::function<void(const Field& field, const json::Place& at)>& read);

std::string key_table(const Fields& fields);  // of docs/model-format.md, in Markdown

}  // namespace graphrun
