// labelled_rows.h: rows of an external file as the only split, "data", of a model, for `eval --data`.
// Contract: the file includes the targets; fitted statistics come from the weights. Throws Error.
#pragma once

#include <string>

#include "graphrun/model.h"

namespace graphrun {

DataSet labelled_rows(const std::string& model, const LoadOptions& options);  // file: LoadOptions::evaluates

}  // namespace graphrun
