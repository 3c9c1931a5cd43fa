// pair_text.h: a step as an expression of CUDA C++ over the row of two lanes (kernels/cuda/tile/pair.h), and which
// values the lanes share out.
// Contract: that of row_text.h, from which all texts come that know nothing of lanes: these read and make whole values.
// Leaves to others: what a name stands for, and the stage around it (thread_stage.cpp).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "executors/cuda_planner/row_text.h"

namespace graphrun::cuda {

// Of a reduced value: numbers of each lane, and the function of (at, second, e) that finds element e among them.
struct PairSums {
  std::int64_t numbers = 0;
  std::string place;
};

// A step whose operands are halves or not.
class PairText {
 public:
  PairText(const TextCall& call, std::vector<bool> halves) : call_(call), halves_(std::move(halves)) {}

  bool makes_half() const;
  bool fits() const;  // otherwise pairs can't have the region
  PairSums sums() const;

  // Variables that it reads beside its operands, as statements; those of `there` are made already.
  std::string before(std::set<std::string>& there) const;
  std::string text(std::int64_t at, std::string& reason) const;

 private:
  enum class Form { whole, half };
  bool is_product() const;   // of a row with weights
  bool sums_halves() const;  // of one that each lane has half of: then lanes tell each other their parts of sums
  bool is_elementwise() const;
  bool sums_columns() const;  // of a product over rows: otherwise its rows are shared out
  Form wanted(std::size_t input) const;
  std::string name(std::size_t input) const;

  const TextCall& call_;
  std::vector<bool> halves_;
};

}  // namespace graphrun::cuda
