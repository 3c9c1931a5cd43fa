#include "conformance/samples.h"

#include <cmath>
#include <stdexcept>

#include "graphrun/scalar_op_list.h"

namespace graphrun::test {

// The row bounds the error against the exact result, from which the reference is at most half an ulp away.
double scalar_ulps(std::string_view op) {
#define GRAPHRUN_ULPS(name, Functor, ulps, ...) \
  if (op == #name) return std::ceil((ulps) + 0.5) - 1;
  GRAPHRUN_SCALAR_OPS(GRAPHRUN_ULPS)
#undef GRAPHRUN_ULPS
  throw std::invalid_argument("not a scalar op: " + std::string(op));
}

const std::vector<Sample>& all_samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> list;
    for (auto family : {samples::unary, samples::binary, samples::comparisons, samples::matmul, samples::reductions,
                        samples::rowwise, samples::movement, samples::random, samples::sources}) {
      for (Sample& sample : family()) list.push_back(std::move(sample));
    }
    return list;
  }();
  return all;
}

}  // namespace graphrun::test
