// Partial results of strands: the order that Combine promises, for any number of them.
#include "executors/cpu/combine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/scalar_loops.h"

namespace graphrun {
namespace {

float of_two(CombineOp op, float x, float y) {
  switch (op) {
    case CombineOp::sum:
      return x + y;
    case CombineOp::product:
      return x * y;
    case CombineOp::max:
      return std::max(x, y);
    case CombineOp::min:
      return std::min(x, y);
  }
  return 0;
}

// As program.h says it: strands 1 apart, then 2, then 4.
float by_definition(CombineOp op, std::vector<float> strands) {
  for (std::size_t apart = 1; apart < strands.size(); apart *= 2)
    for (std::size_t s = 0; s + apart < strands.size(); s += 2 * apart)
      strands[s] = of_two(op, strands[s], strands[s + apart]);
  return strands[0];
}

TEST(Combine, StrandsOneTwoFourApart) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-2, 2);
  constexpr std::size_t kApart = 300;
  for (int strands = 1; strands <= 64; ++strands) {
    std::vector<float> results(kApart * static_cast<std::size_t>(strands));
    for (float& x : results) x = uniform(random);
    const std::vector<float> before = results;
    for (const CombineOp op : {CombineOp::sum, CombineOp::product, CombineOp::max, CombineOp::min}) {
      for (const std::int64_t n : {std::int64_t{1}, std::int64_t{19}, kCombineBlock}) {
        float block[kCombineBlock];
        const float* const got =
            combined(cpu::isa_table(Isa::plain), op, {results.data() + 7, kApart, strands}, n, block);
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
          std::vector<float> each;
          for (std::size_t s = 0; s < static_cast<std::size_t>(strands); ++s)
            each.push_back(results[7 + s * kApart + i]);
          ASSERT_EQ(got[i], by_definition(op, each)) << name_of(op) << " of " << strands << " strands, " << i;
        }
      }
    }
    ASSERT_EQ(results, before) << "strands keep what they have";
  }
}

}  // namespace
}  // namespace graphrun
