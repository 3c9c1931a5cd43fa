// model.h: what is behind gr_model.
#pragma once

#include <optional>

#include "graphrun/c.h"
#include "graphrun/model.h"

struct gr_model {
  std::optional<graphrun::Model> model;  // nothing: a session has taken it
};

namespace graphrun::c_api {

Model take(gr_model* model);  // throws Error where it was taken before

}  // namespace graphrun::c_api
