// tensors.h: host tensors for tests: from listed or seeded random numbers, and back to doubles.
// Contract: pure functions; the same arguments give the same bytes on every machine.
// Leaves to others: the meaning of the numbers (conformance samples), running them (graph_run.h).
#pragma once

#include <string_view>
#include <vector>

#include "graphrun/tensor.h"

namespace graphrun::test {

// The values in row-major order, repeated from the start if there are fewer values than elements.
HostTensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values);

// Uniform in [low, high); integers are rounded down, booleans are true in the upper half. f64 values need more digits
// than a float has, so that a kernel which computes in float is detected.
HostTensor random_tensor(DType dtype, const Shape& shape, double low, double high, std::string_view stream);

std::vector<double> to_doubles(const HostTensor& tensor);

// Zeroes the rows of samples outside the batch: the rule for every row-valued tensor.
void clear_rows(HostTensor& tensor, std::int64_t rows_per_sample, std::int64_t samples);
// Number of elements before the first row outside the batch.
std::size_t valid_elements(const TensorType& type, std::int64_t samples);

}  // namespace graphrun::test
