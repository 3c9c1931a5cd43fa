#include "kernels/cpu/families.h"

namespace graphrun::cpu {
namespace {

void run_unary(const KernelArgs& args, UnaryFn loop) {
  const auto* scalars = std::get_if<ScalarParams>(&args.params);
  loop(args.output<float>(), args.input<float>(0), valid_elements(args, args.out_type),
       scalars != nullptr ? static_cast<float>(scalars->a) : 0.0f,
       scalars != nullptr ? static_cast<float>(scalars->b) : 0.0f);
  clear_invalid_rows(args);
}

template <class T>
Strided<T> operand(const KernelArgs& args, const Broadcast& b, const std::int64_t* offset, int i) {
  return {args.input<T>(i) + offset[i], b.row[i], b.column[i]};
}

template <class Out>
void run_binary(const KernelArgs& args, BinaryFn<Out> loop) {
  const Broadcast b = broadcast(args, 2);
  for_each_slab(b, 2, [&](std::int64_t out, const std::int64_t* offset) {
    loop(args.output<Out>() + out, b.rows, b.columns, operand<float>(args, b, offset, 0),
         operand<float>(args, b, offset, 1));
  });
  clear_invalid_rows(args);
}

template <Isa isa>
void where_kernel(const KernelArgs& args) {
  const Broadcast b = broadcast(args, 3);
  for_each_slab(b, 3, [&](std::int64_t out, const std::int64_t* offset) {
    table_of<isa>().where(args.output<float>() + out, b.rows, b.columns, operand<std::uint8_t>(args, b, offset, 0),
                          operand<float>(args, b, offset, 1), operand<float>(args, b, offset, 2));
  });
  clear_invalid_rows(args);
}

template <class Functor, int inputs>
void logical_kernel(const KernelArgs& args) {
  const Broadcast b = broadcast(args, inputs);
  for_each_slab(b, inputs, [&](std::int64_t out_offset, const std::int64_t* offset) {
    std::uint8_t* out = args.output<std::uint8_t>() + out_offset;
    const Strided<std::uint8_t> x = operand<std::uint8_t>(args, b, offset, 0);
    const Strided<std::uint8_t> y = operand<std::uint8_t>(args, b, offset, inputs - 1);
    for (std::int64_t r = 0; r < b.rows; ++r)
      for (std::int64_t c = 0; c < b.columns; ++c)
        *out++ = static_cast<std::uint8_t>(
            Functor::apply(x.data[r * x.row + c * x.column] != 0, y.data[r * y.row + c * y.column] != 0));
  });
  clear_invalid_rows(args);
}

template <Isa isa, UnaryOp op>
void unary_kernel(const KernelArgs& args) {
  run_unary(args, table_of<isa>().unary[op]);
}
template <Isa isa, BinaryOp op>
void binary_kernel(const KernelArgs& args) {
  run_binary<float>(args, table_of<isa>().binary[op]);
}
template <Isa isa, CompareOp op>
void compare_kernel(const KernelArgs& args) {
  run_binary<std::uint8_t>(args, table_of<isa>().compare[op]);
}

}  // namespace

KernelFn elementwise_kernel(std::string_view op, Isa isa) {
#define GRAPHRUN_ENTRY(family, name)                                                                      \
  KernelEntry{#name,                                                                                      \
              {family##_kernel<Isa::plain, family##_##name>, family##_kernel<Isa::avx2, family##_##name>, \
               family##_kernel<Isa::avx512, family##_##name>}},
#define GRAPHRUN_UNARY_ENTRY(name, Functor, reference) GRAPHRUN_ENTRY(unary, name)
#define GRAPHRUN_BINARY_ENTRY(name, Functor, reference) GRAPHRUN_ENTRY(binary, name)
#define GRAPHRUN_COMPARE_ENTRY(name, Functor, reference) GRAPHRUN_ENTRY(compare, name)
  static constexpr std::array kEntries = {
      GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY_ENTRY) GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_ENTRY)
          GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_ENTRY)
              KernelEntry{"where", {where_kernel<Isa::plain>, where_kernel<Isa::avx2>, where_kernel<Isa::avx512>}}};
#undef GRAPHRUN_ENTRY
#undef GRAPHRUN_UNARY_ENTRY
#undef GRAPHRUN_BINARY_ENTRY
#undef GRAPHRUN_COMPARE_ENTRY
  if (KernelFn kernel = find_kernel(kEntries, op, isa)) return kernel;
  if (op == "logical_and") return logical_kernel<scalar::LogicalAnd, 2>;
  if (op == "logical_or") return logical_kernel<scalar::LogicalOr, 2>;
  if (op == "logical_not") return logical_kernel<scalar::LogicalNot, 1>;
  return nullptr;
}

}  // namespace graphrun::cpu
