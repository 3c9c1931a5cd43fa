// class_numbers.h: which inputs of a model hold class numbers or indices, and how many there are of what they number;
// which hold probabilities, the targets of cross-entropies.
// Contract: from what OpDef::classes says of the ops that the roots depend on, followed back to inputs through ops
// that only move values. A number that was computed is nobody's mistake in the data: the op says what it does with one
// out of range. Allocates by ops, not by extents.
#pragma once

#include <vector>

#include "base/class_range.h"
#include "graphrun/model.h"

namespace graphrun {

// Of all that the model computes from its data: loss, metrics and outputs; or of its outputs alone, numbers only.
std::vector<ClassRange> class_numbers(const Model& model);
std::vector<ClassRange> class_numbers_of_outputs(const Model& model);

}  // namespace graphrun
