#include "conformance/samples.h"

namespace graphrun::test {

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
