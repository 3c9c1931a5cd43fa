// dispatch.cpp: the look-ups of cpu_kernels.h: instruction sets, kernels, workspaces, views.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "graphrun/error.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/op_traits.h"
#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/ref.h"

namespace graphrun {

std::string_view name_of(Isa isa) {
  constexpr std::string_view kNames[] = {"plain", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas = {Isa::plain};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    isas.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
      isas.push_back(Isa::avx512);
  }
#endif
  return isas;
}

Isa default_isa() {
  const std::vector<Isa> isas = available_isas();
  const char* wanted = std::getenv("GRAPHRUN_ISA");
  if (wanted == nullptr || *wanted == '\0') return isas.back();
  std::vector<std::string> names;
  std::string listing;
  for (const Isa isa : isas) {
    if (name_of(isa) == wanted) return isa;
    names.emplace_back(name_of(isa));
    listing += (listing.empty() ? "" : ", ") + names.back();
  }
  throw Error(ErrorKind::input, "isa.unknown",
              "GRAPHRUN_ISA: expected one of " + listing + " on this machine, got '" + wanted + "'",
              did_you_mean(wanted, names));
}

namespace {

const cpu::Entry* find(Op op) {
  using namespace cpu;
  for (const std::span<const Entry> family :
       {elementwise_kernels, product_kernels, solve_kernels, line_kernels, movement_kernels, scatter_kernels}) {
    for (const Entry& entry : family)
      if (entry.op == op) return &entry;
  }
  return nullptr;
}

}  // namespace

KernelFn cpu_kernel(Op op, Isa isa) {
  if (const cpu::Entry* const entry = find(op)) return entry->kernels[static_cast<int>(isa)];
  // Counters, states and permutations gain nothing from kernels of their own.
  for (const Op plain : {Op::row_count, family_op::varying_row_count, Op::increment, Op::record, Op::assign,
                         Op::shard_step, Op::combine_shards, family_op::permutation, family_op::divide_step})
    if (op == plain) return ref_kernel(op);
  return nullptr;
}

bool cpu_takes_f64(Op op) {
  if (traits_of(op).dtypes.find('F') == std::string_view::npos) return true;  // moves bytes
  const cpu::IsaTableOf<double>& table = *cpu::isa_table(Isa::plain).wide;
  for (const Op own : {Op::matmul, Op::pad, Op::argmax, Op::argmin, Op::dropout, Op::scatter_add, Op(family_op::fold),
                       Op(family_op::solve_spd)})
    if (op == own) return true;
  if (cpu::scalar_loop(table, op) != nullptr) return true;
  const cpu::LineLoopOf<double>* const loop = cpu::line_loop(table, op, DType::f64);
  return loop != nullptr && loop->along != nullptr;
}

std::uint64_t cpu_workspace(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output) {
  const cpu::Entry* const entry = find(op);
  return entry == nullptr || entry->workspace == nullptr ? 0 : entry->workspace(params, inputs, output);
}

bool cpu_takes_views(Op op, std::span<const View> views, const TensorType& output) {
  const bool one = views.size() == 1;
  const auto goes_on = [&](const View& view) {  // along the innermost axis that has more than one element
    int axis = output.shape.rank() - 1;
    while (axis >= 0 && output.shape[axis] == 1) --axis;
    const std::int64_t stride = axis < 0 ? 1 : broadcast(view, output.shape).strides[axis];
    return stride == 1 || (stride == 0 && !one);
  };
  const auto has_rows = [](const View& view) { return view.strides[view.extents.rank() - 1] == 1; };
  if (std::all_of(views.begin(), views.end(), is_dense)) return true;
  if (op == Op::matmul) return std::all_of(views.begin(), views.end(), has_rows);
  if (op == Op::broadcast_to || op == Op::transpose || op == Op::slice || op == Op::pad || op == Op::concat ||
      op == family_op::windows)
    return true;
  const bool elementwise = std::ranges::any_of(cpu::elementwise_kernels, [op](const auto& e) { return e.op == op; });
  return elementwise && std::all_of(views.begin(), views.end(), goes_on);
}

namespace cpu {

const IsaTable& isa_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::table;
  if (isa == Isa::avx2) return avx2::table;
#endif
  (void)isa;
  return plain::table;
}

}  // namespace cpu
}  // namespace graphrun
