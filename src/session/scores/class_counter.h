// class_counter.h: classification metrics of one output, accumulated batch by batch.
// Contract: the constructor takes all targets, before any outputs. Not here: reading rows (split_scores.cpp), areas
// under curves (ranking.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graphrun/class_outputs.h"
#include "graphrun/scores.h"
#include "graphrun/tensor.h"

namespace graphrun {

class ClassCounter {
 public:
  // `target`: one number per class for each row, or the class index.
  ClassCounter(const ClassOutput& output, const HostTensor& target, std::size_t classes);

  // Adds the next output rows: one number per class, or a single number.
  void add(std::span<const float> rows);
  ClassScores scores(bool with_curves = false) const;

 private:
  struct Counts {
    std::uint64_t rows = 0, predicted = 0, right = 0;
  };

  void add_row(std::span<const float> row);
  void add_labels(std::span<const float> row);
  void add_probabilities(std::span<const float> row);  // includes the log loss
  double share_of(std::size_t k) const;                // target share of class k in the current row
  void add_top(std::span<const float> row, std::size_t truth);
  void fill_exclusive(ClassScores& scores) const;
  void fill_curves(ClassScores& scores, bool with_curves) const;

  const ClassOutput output_;
  const std::size_t width_;    // numbers per row
  const std::size_t classes_;  // 2 if width_ is 1
  ClassScores::Kind kind_ = ClassScores::Kind::several;
  std::vector<std::uint32_t> truth_;  // class of each row; kUnseenClass: none of the model
  std::vector<float> truths_;         // (rows, width): labels, or class shares
  std::size_t seen_ = 0;              // rows so far
  std::vector<Counts> counts_;        // one per class
  std::vector<std::uint64_t> confusion_;
  std::uint64_t right_ = 0, unseen_ = 0;
  double log_loss_ = 0;
  std::vector<std::uint64_t> top_;  // one per entry of ClassScores::top
  bool keeps_ = false;
  std::vector<double> probabilities_;  // (rows, width), unless there are too many
};

}  // namespace graphrun
