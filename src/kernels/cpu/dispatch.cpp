// dispatch.cpp: the look-ups of cpu_kernels.h: instruction sets, kernels, workspaces, views.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/cpu_kernels.h"

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

const cpu::Entry* find(std::span<const cpu::Entry> family, Op op) {
  const auto found =
      std::find_if(family.begin(), family.end(), [op](const cpu::Entry& entry) { return entry.op == op; });
  return found == family.end() ? nullptr : &*found;
}

}  // namespace

KernelFn cpu_kernel(Op op, Isa isa) {
  using namespace cpu;
  for (const std::span<const Entry> family :
       {elementwise_kernels, product_kernels, line_kernels, movement_kernels, rearrange_kernels, scatter_kernels}) {
    if (const Entry* entry = find(family, op)) return entry->kernels[static_cast<int>(isa)];
  }
  return nullptr;
}

std::uint64_t cpu_workspace(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output) {
  const auto* matmul = params.get_if<MatmulParams>();
  const auto* reduce = params.get_if<ReduceParams>();
  if (op == Op::matmul && matmul != nullptr) return cpu::product_workspace(*matmul, inputs[0], output);
  if ((op == Op::sum || op == Op::logsumexp) && reduce != nullptr) return cpu::line_workspace(*reduce, inputs[0]);
  if (op == Op::scatter_add) return cpu::scatter_workspace(inputs[0], output);
  return 0;
}

bool cpu_spares_workspace(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output) {
  const auto* matmul = params.get_if<MatmulParams>();
  return op == Op::matmul && matmul != nullptr && cpu::product_spares_workspace(*matmul, inputs[0], output);
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
  if (op == Op::broadcast_to || op == Op::transpose || op == Op::slice || op == Op::pad || op == Op::concat)
    return true;
  return find(cpu::elementwise_kernels, op) != nullptr && std::all_of(views.begin(), views.end(), goes_on);
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
