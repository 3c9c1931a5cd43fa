// Partial results of partitions: the order that Combine promises, for any number of them.
#include "executors/cpu/combine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/cpu_kernels.h"

namespace graphrun {
namespace {

template <class Real>
Real of_two(CombineOp op, Real x, Real y) {
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

// As program.h says it: partitions 1 apart, then 2, then 4.
template <class Real>
Real by_definition(CombineOp op, std::vector<Real> partitions) {
  for (std::size_t apart = 1; apart < partitions.size(); apart *= 2)
    for (std::size_t s = 0; s + apart < partitions.size(); s += 2 * apart)
      partitions[s] = of_two(op, partitions[s], partitions[s + apart]);
  return partitions[0];
}

template <class Real>
void expect_order(const cpu::IsaTableOf<Real>& table) {
  std::mt19937 random(1);
  std::uniform_real_distribution<Real> uniform(-2, 2);
  constexpr std::size_t kApart = 300;
  for (int partitions = 1; partitions <= 64; ++partitions) {
    std::vector<Real> results(kApart * static_cast<std::size_t>(partitions));
    for (Real& x : results) x = uniform(random);
    const std::vector<Real> before = results;
    for (const CombineOp op : {CombineOp::sum, CombineOp::product, CombineOp::max, CombineOp::min}) {
      for (const std::int64_t n : {std::int64_t{1}, std::int64_t{19}, kCombineBlock}) {
        Real block[kCombineBlock];
        const Real* const got = combined<Real>(table, op, {results.data() + 7, kApart, partitions}, n, block);
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
          std::vector<Real> each;
          for (std::size_t s = 0; s < static_cast<std::size_t>(partitions); ++s)
            each.push_back(results[7 + s * kApart + i]);
          ASSERT_EQ(got[i], by_definition(op, each)) << name_of(op) << " of " << partitions << " partitions, " << i;
        }
      }
    }
    ASSERT_EQ(results, before) << "partitions keep what they have";
  }
}

TEST(Combine, PartitionsOneTwoFourApart) {
  expect_order(cpu::isa_table(Isa::plain));
  expect_order(*cpu::isa_table(Isa::plain).wide);
}

}  // namespace
}  // namespace graphrun
