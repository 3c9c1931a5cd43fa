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
  std::vector<std::string> words = {};  // class labels, or columns of a multi-label target; empty: numbers
  bool is_multi_label = false;          // several values of which each is a label of its own
  bool has_threshold = false;           // multi-label, or at most two classes
  // Smallest probability at which the second of two classes, or each label of a multi-label output, is predicted
  // (DataSet::thresholds). Empty: a probability above 1/2, that is a logit above 0.
  std::vector<double> thresholds = {};

  // Predicted class: of two classes, the second if predicts() says so; else the index of the largest value.
  GRAPHRUN_API std::size_t class_of(std::span<const float> row) const;
  // Whether value k alone predicts its class: of a single value, of two values with thresholds, of a multi-label row.
  GRAPHRUN_API bool predicts(std::span<const float> row, std::size_t k) const;
  GRAPHRUN_API std::string label(std::size_t number) const;  // label or number of a class
  // Probabilities of logits; other values are copied. Both spans have the same size, and so does each row.
  GRAPHRUN_API void probabilities(std::span<const float> row, std::span<double> to) const;
  GRAPHRUN_API void to_probabilities(std::span<float> row) const;  // the same, rounded to f32
};

GRAPHRUN_API std::vector<ClassOutput> class_outputs(const Model& model);  // in the order of Model::outputs

}  // namespace graphrun
