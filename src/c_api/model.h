// model.h: definition of gr_model.
#pragma once

#include <optional>
#include <string_view>

#include "base/json_writer.h"
#include "graphrun/c.h"
#include "graphrun/model.h"

struct gr_model {
  std::optional<graphrun::Model> model;  // empty: a session has taken it
};

namespace graphrun::c_api {

Model take(gr_model* model);  // throws Error if it was taken before

// Writes "columns": [{"name": "color", "words": ["red", "blue"]}] if the input has categorical columns.
void write_columns(JsonWriter& json, const DataSet& data, std::string_view input);

}  // namespace graphrun::c_api
