// model.h: what is behind gr_model.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "graphrun/c.h"
#include "graphrun/model.h"

struct gr_model {
  std::optional<graphrun::Model> model;  // nothing: a session has taken it
};

namespace graphrun::c_api {

Model take(gr_model* model);  // throws Error where it was taken before

// "columns": [{"name": "color", "words": ["red", "blue"]}], of an input that lists some.
void add_columns(json::Value& described, const DataSet& data, std::string_view input);

}  // namespace graphrun::c_api
