// ref_random.cpp: random samples. base/random_bits.h, which every executor calls, defines their bits.
#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/ref_access.h"
#include "kernels/ref_families.h"

namespace graphrun::ref {
namespace {

// Sets each valid element i of out to value(word of i, i).
template <class F>
void draw(const KernelArgs& args, int step_input, F&& value) {
  const auto& params = args.params.as<RandomParams>();
  const std::uint64_t step = *args.input<std::uint64_t>(step_input);
  const i64 n = view_out(args).extents.elements();
  for (i64 i = 0; i < n; ++i) out(args, i, value(bits::word(params.key, step, static_cast<std::uint64_t>(i)), i));
  clear_invalid_rows(args);
}

void random_uniform(const KernelArgs& args) {
  const auto& p = args.params.as<RandomParams>();
  draw(args, 0, [&](bits::u32 word, i64) { return static_cast<double>(bits::uniform(word, p.a, p.b)); });
}

void random_normal(const KernelArgs& args) {
  const auto& p = args.params.as<RandomParams>();
  draw(args, 0, [&](bits::u32 word, i64) { return static_cast<double>(bits::normal(word, p.a, p.b)); });
}

void dropout(const KernelArgs& args) {
  const double rate = args.params.as<RandomParams>().a;
  const Dims<1> x = merged<1>({view_in(args, 0)});
  draw(args, 1,
       [&](bits::u32 word, i64 i) { return bits::unit(word) < rate ? 0.0 : in(args, 0, x.offset(i)) / (1 - rate); });
}

void permutation(const KernelArgs& args) {
  const auto& p = args.params.as<RandomParams>();
  const std::uint64_t step = *args.input<std::uint64_t>(0);
  const i64 n = args.out_type.shape.elements();
  for (i64 i = 0; i < n; ++i) {
    const auto to = bits::permuted(static_cast<bits::u64>(i), static_cast<bits::u64>(n), p.key, step);
    args.output<std::int32_t>()[i] = static_cast<std::int32_t>(to);
  }
}

constexpr Entry kDraws[] = {
    {family_op::random_uniform, random_uniform},
    {family_op::random_normal, random_normal},
    {Op::dropout, dropout},
    {family_op::permutation, permutation},
};

}  // namespace

std::span<const Entry> random() {
  return kDraws;
}

}  // namespace graphrun::ref
