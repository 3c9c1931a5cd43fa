// sample.h: one case of one op: operands, attributes, the batch, and the tolerance against ref.
// Contract: plain data. A family file under samples/ returns the samples of its ops; samples.h lists the families.
// Leaves to others: the checks (values_test.cpp, aliases_test.cpp, gradients_test.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/graph_builder.h"
#include "graphrun/types.h"

namespace graphrun::test {

// Values are random in [low, high), or the listed ones, repeated.
struct Operand {
  TensorType type;
  double low = -2;
  double high = 2;
  std::vector<double> values = {};
  std::string_view state = "input";  // or parameter, slot, counter, metric: node type of the operand
};

// Accepts a value if either holds: at most `ulps` floats between value and reference; |difference| <= relative * max(1,
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
  std::int64_t count = -1;            // samples in this batch; -1: batches are always full, without a count
  bool nan_spreads = false;           // NaN in an operand gives NaN at the same position of the result
  bool gradient = false;              // values are away from kinks and edges: compare with finite differences
  std::string_view first_only = {};   // reason why second derivatives are not compared
  std::vector<double> expected = {};  // the exact result, which ref must produce too
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

// Sets `count` samples in a batch of `capacity`.
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
