// class_counter.h: the scores of an output whose target is classes, from its rows, batch after batch.
// Contract: targets are seen before outputs, all of them. Leaves to others: the rows (split_scores.cpp), areas under
// curves (ranking.h).
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
  // `target` has one number a class for each row, or the class's number.
  ClassCounter(const ClassOutput& output, const HostTensor& target, std::size_t classes);

  // The next rows of the output, one number a class, or one in all.
  void add(std::span<const float> rows);
  ClassScores scores() const;

 private:
  struct Counts {
    std::uint64_t rows = 0, predicted = 0, right = 0;
  };

  void add_row(std::span<const float> row);
  void add_labels(std::span<const float> row);
  void add_probabilities(std::span<const float> row);  // and their logarithms
  double share_of(std::size_t k) const;                // of the present row that is of a class
  void add_top(std::span<const float> row, std::size_t truth);
  void fill_exclusive(ClassScores& scores) const;
  void fill_curves(ClassScores& scores) const;

  const ClassOutput output_;
  const std::size_t width_;    // numbers of a row
  const std::size_t classes_;  // two where it is one
  ClassScores::Kind kind_ = ClassScores::Kind::several;
  std::vector<std::uint32_t> truth_;  // of each row, its class
  std::vector<float> truths_;         // (rows, width): of labels, and of shares of classes
  std::size_t seen_ = 0;              // rows
  std::vector<Counts> counts_;        // by class
  std::vector<std::uint64_t> confusion_;
  std::uint64_t right_ = 0;
  double log_loss_ = 0;
  std::vector<std::uint64_t> top_;     // by ClassScores::top
  std::vector<double> probabilities_;  // (rows, width), where curves are asked for
};

}  // namespace graphrun
