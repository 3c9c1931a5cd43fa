// tensors.h: host tensors for tests: from listed numbers, from seeded random numbers, and back to doubles.
// Contract: pure functions; the same arguments give the same bytes on every machine.
// Leaves to others: what the numbers mean (conformance samples), running them (graph_run.h).
#pragma once

#include <string_view>
#include <vector>

#include "graphrun/tensor.h"

namespace graphrun::test {

// The values in row-major order, repeated from the start when there are fewer than elements.
HostTensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values);

// Uniform in [low, high); integers are rounded down, booleans are true in the upper half. f64 values use all digits
// that a float does not have, so that a kernel which computes in float is seen.
HostTensor random_tensor(DType dtype, const Shape& shape, double low, double high, std::string_view stream);

std::vector<double> to_doubles(const HostTensor& tensor);

// Rows of samples that are not in the batch become zero: the rule that every row-valued tensor keeps.
void clear_rows(HostTensor& tensor, std::int64_t rows_per_sample, std::int64_t samples);
// Elements before the first row that is not in the batch.
std::size_t valid_elements(const TensorType& type, std::int64_t samples);

}  // namespace graphrun::test
