// model.h: definition of gr_model.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "graphrun/c.h"
#include "graphrun/model.h"

struct gr_model {
  std::optional<graphrun::Model> model;  // empty: a session has taken it
};

namespace graphrun::c_api {

Model take(gr_model* model);  // throws Error if it was taken before

// Adds "columns": [{"name": "color", "words": ["red", "blue"]}] if the input has categorical columns.
void add_columns(json::Value& described, const DataSet& data, std::string_view input);

}  // namespace graphrun::c_api
