// class_numbers.h: the inputs of a model that contain class numbers or indices, and their ranges; also the inputs that
// contain probabilities (targets of cross-entropies).
// Contract: starts from OpDef::classes of the ops that the roots depend on, and traces back to inputs through ops that
// only copy values. Computed numbers are not checked: they are not errors in the data, and each op defines its result
// for numbers out of range. Memory use grows with the number of ops, not with extents.
#pragma once

#include <vector>

#include "base/class_range.h"
#include "graphrun/model.h"

namespace graphrun {

// Ranges for loss, metrics and outputs; the second function covers outputs only, and only class numbers and indices.
std::vector<ClassRange> class_numbers(const Model& model);
std::vector<ClassRange> class_numbers_of_outputs(const Model& model);

}  // namespace graphrun
