// sample.h: one case of one op: operands, attributes, the batch, and how near an executor must come to ref.
// Contract: plain data. A family file under samples/ returns the samples of its ops; samples.h lists the families.
// Leaves to others: what is checked (values_test.cpp, aliases_test.cpp, gradients_test.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/graph_builder.h"
#include "graphrun/types.h"

namespace graphrun::test {

// Values lie in [low, high), or are the listed ones, repeated.
struct Operand {
  TensorType type;
  double low = -2;
  double high = 2;
  std::vector<double> values = {};
  std::string_view state = "input";  // or parameter, slot, counter, metric: what the operand is for the graph
};

// Passes when either holds: at most `ulps` floats lie between value and reference; |difference| <= relative * max(1,
// |reference|).
struct Tolerance {
  double ulps = 0;
  double relative = 0;
};

struct Sample {
  std::string op;
  std::string name;
  std::vector<Operand> operands;
  AttrList attributes = {};
  Tolerance tolerance = {};
  std::int64_t capacity = 1;          // samples of a full batch
  std::int64_t count = -1;            // samples in this batch; -1: batches are always full and no one counts
  bool nan_spreads = false;           // NaN in an operand gives NaN at the same place of the result
  bool gradient = false;              // the values are away from kinks and edges: compare with differences
  std::string_view first_only = {};   // why second derivatives are not compared
  std::vector<double> expected = {};  // what the result is, exactly: also for ref
};

inline TensorType f32(Shape shape) {
  return {DType::f32, shape, 0};
}
inline TensorType rows_f32(Shape shape, std::int64_t rows = 1) {
  return {DType::f32, shape, rows};
}
inline TensorType typed(DType dtype, Shape shape, std::int64_t rows = 0) {
  return {dtype, shape, rows};
}

// "partial_rows" with count samples of a capacity of 5.
inline Sample batch_of(std::int64_t count, Sample sample, std::int64_t capacity = 5) {
  sample.capacity = capacity;
  sample.count = count;
  return sample;
}
inline Sample differentiable(Sample sample) {
  sample.gradient = true;
  return sample;
}

}  // namespace graphrun::test
