// labelled_rows.h: the rows of another file as the one split "data" of a model, for `eval --data`.
// Contract: targets are in the file too; what was fitted comes from the weights. Throws Error.
#pragma once

#include <string>

#include "graphrun/model.h"

namespace graphrun {

DataSet labelled_rows(const std::string& model, const LoadOptions& options);  // of LoadOptions::evaluates

}  // namespace graphrun
