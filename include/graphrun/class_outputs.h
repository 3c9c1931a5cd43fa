// class_outputs.h: what the numbers of an output say where its target is classes.
// Contract: found in the graph: a target is classes when its input was made of words (data.md), or a
// cross-entropy compares it; an output is logits when such a cross-entropy takes it. A pure function.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graphrun/export.h"
#include "graphrun/model.h"

namespace graphrun {

struct ClassOutput {
  enum class Numbers { plain, softmax_logits, sigmoid_logits };  // plain: probabilities, or other scores
  bool is_class = false;
  Numbers numbers = Numbers::plain;
  std::vector<std::string> words = {};  // of the classes; empty: they are numbers

  // The class of a row: the place of its largest score; of one score whether it is above 1/2, or logits above 0.
  GRAPHRUN_API std::size_t class_of(std::span<const float> row) const;
  GRAPHRUN_API std::string label(std::size_t number) const;        // its word or its number
  GRAPHRUN_API void to_probabilities(std::span<float> row) const;  // logits only; in double, then rounded
};

GRAPHRUN_API std::vector<ClassOutput> class_outputs(const Model& model);  // in the order of Model::outputs

}  // namespace graphrun
