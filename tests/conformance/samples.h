// samples.h: the explicit list of the families of samples; an op without one fails coverage_test.cpp.
// Contract: the same list on every call; (op, name) is unique.
#pragma once

#include "conformance/sample.h"

namespace graphrun::test {

namespace samples {
std::vector<Sample> unary();
std::vector<Sample> binary();
std::vector<Sample> comparisons();
std::vector<Sample> matmul();
std::vector<Sample> reductions();
std::vector<Sample> movement();
std::vector<Sample> rowwise();
std::vector<Sample> random();
std::vector<Sample> sources();
}  // namespace samples

const std::vector<Sample>& all_samples();

// How many floats may lie between a scalar op's result and the rounded reference: what its row in op_list.h states.
double scalar_ulps(std::string_view op);

}  // namespace graphrun::test
