// random.cpp: draws by base/random_bits.h, which defines their bits.
#include "base/random_bits.h"

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params/random.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

template <class F>
void draw(const KernelArgs& args, int step_input, F&& value) {
  const auto& params = args.params.as<RandomParams>();
  const std::uint64_t step = *args.input<std::uint64_t>(step_input);
  const std::int64_t n = valid_elements(args, args.out_type);
  float* out = args.output<float>();
  for_ranges(args.pool, parts_for(16 * n), n, kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      out[i] = value(bits::word(params.key, step, static_cast<std::uint64_t>(i)), i);
    }
  });
}

void random_uniform(const KernelArgs& args, const IsaTable&) {
  const auto& p = args.params.as<RandomParams>();
  draw(args, 0, [&](bits::u32 word, std::int64_t) { return bits::uniform(word, p.a, p.b); });
}

void random_normal(const KernelArgs& args, const IsaTable&) {
  const auto& p = args.params.as<RandomParams>();
  draw(args, 0, [&](bits::u32 word, std::int64_t) { return bits::normal(word, p.a, p.b); });
}

void dropout(const KernelArgs& args, const IsaTable&) {
  const double rate = args.params.as<RandomParams>().a;
  const auto kept = static_cast<float>(1 - rate);
  const float* x = args.input<float>(0);
  draw(args, 1, [&](bits::u32 word, std::int64_t i) { return bits::unit(word) < rate ? 0.0f : x[i] / kept; });
}

void permutation(const KernelArgs& args, const IsaTable&) {
  const auto& p = args.params.as<RandomParams>();
  const std::uint64_t step = *args.input<std::uint64_t>(0);
  const auto n = static_cast<std::uint64_t>(args.out_type.shape[0]);
  for (std::uint64_t i = 0; i < n; ++i) {
    args.output<std::int32_t>()[i] = static_cast<std::int32_t>(bits::permuted(i, n, p.key, step));
  }
}

constexpr Entry kRandomKernels[] = {entry<random_uniform>(family_op::random_uniform),
                                    entry<random_normal>(family_op::random_normal), entry<dropout>(Op::dropout),
                                    entry<permutation>(family_op::permutation)};

}  // namespace

std::span<const Entry> random_kernels() {
  return kRandomKernels;
}

}  // namespace graphrun::cpu
