// pair_text.h: a step as a CUDA C++ expression over a row that two lanes share (kernels/cuda/tile/pair.h), and the
// values that the lanes split.
// Contract: that of row_text.h, which writes all code that is independent of lanes, on whole values.
// Not here: the meaning of a name, and the stage around the code (thread_stage.cpp).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "executors/cuda_planner/row_text.h"

namespace graphrun::cuda {

// A reduced value: its number of sums per lane, and the function of (at, second, e) that finds element e among them.
struct PairSums {
  std::int64_t numbers = 0;
  std::string place;
};

// A step with its operands marked as halves or whole values.
class PairText {
 public:
  PairText(const TextCall& call, std::vector<bool> halves) : call_(call), halves_(std::move(halves)) {}

  bool makes_half() const;
  bool fits() const;  // if false, pair tiles cannot run the region
  PairSums sums() const;

  // Statements that define converted operands. Variables in `there` are already defined; new ones are added to it.
  std::string before(std::set<std::string>& there) const;
  std::string text(std::int64_t at) const;

 private:
  enum class Form { whole, half };
  bool is_product() const;   // product of a row and weights
  bool sums_halves() const;  // product of a half row: the lanes add their partial sums
  bool is_elementwise() const;
  bool sums_columns() const;  // product over rows: splits its columns, otherwise its rows
  Form wanted(std::size_t input) const;
  std::string name(std::size_t input) const;

  const TextCall& call_;
  std::vector<bool> halves_;
};

}  // namespace graphrun::cuda
