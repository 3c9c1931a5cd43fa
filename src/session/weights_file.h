// weights_file.h: a weights file (graphrun/weights.h) as it was read, and what of it does not fit a model.
// Contract: read_weights() throws Error for a file that cannot be read; that it fits nothing is said by the rest.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/array.h"
#include "graphrun/error.h"
#include "graphrun/model.h"

namespace graphrun {

struct Weights {
  std::string path;
  std::vector<std::pair<std::string, data::Array>> parameters;
  DataSet data;  // what was fitted to it and where it came from; no rows
};

Weights read_weights(const std::string& path);

// One diagnostic for each parameter that the file lacks, has in another shape or dtype, or has and the model has not.
std::vector<Diagnostic> misfits(const Weights& weights, const GraphBuilder& graph);

// The parameter's values as a tensor; misfits() found nothing.
HostTensor tensor_of(const Weights& weights, std::string_view parameter);

}  // namespace graphrun
