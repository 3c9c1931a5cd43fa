// class_outputs.h: how to interpret the values of an output with a class target.
// Contract: derived from the graph. A target is a class if its input has categorical values (data.md) or a
// cross-entropy compares it; an output is logits if such a cross-entropy takes it. A pure function.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graphrun/export.h"
#include "graphrun/model.h"

namespace graphrun {

struct ClassOutput {
  enum class Numbers { plain, softmax_logits, sigmoid_logits };  // plain: probabilities or other values
  bool is_class = false;
  Numbers numbers = Numbers::plain;
  std::vector<std::string> words = {};  // class labels; empty: classes are numbers

  // Predicted class: index of the largest value; with one value, whether it is above 1/2 (logits: above 0).
  GRAPHRUN_API std::size_t class_of(std::span<const float> row) const;
  GRAPHRUN_API std::string label(std::size_t number) const;        // label or number of a class
  GRAPHRUN_API void to_probabilities(std::span<float> row) const;  // logits only; computed in double, then rounded
};

GRAPHRUN_API std::vector<ClassOutput> class_outputs(const Model& model);  // in the order of Model::outputs

}  // namespace graphrun
