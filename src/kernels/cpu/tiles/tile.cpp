// tile.cpp: steps by op; elementwise ops and casts, where such an op is one long loop; ops along the features of a row.
#include "kernels/cpu/tiles/tile.h"

#include <algorithm>

#include "graphrun/op.h"
#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

// Access pattern of an operand over the output's features.
struct Run {
  TileOperand operand;
  Dims<1> dims;  // output features to features of the operand (elements, if it has no rows)

  Run(const TileOperand& of, const Shape& out) : operand(of), dims(merged<1>({broadcast(features(of), out)})) {}
  bool mapped() const { return dims.rank > 1; }
  i64 step() const { return dims.rank == 1 ? dims.dim[0].stride[0] : 0; }  // 0 or 1
  // Returns whether all features form one row: the output's elements in order, or one number for all.
  bool is_flat() const { return !mapped() && (in_tile(operand) ? step() == 1 || dims.count == 1 : step() == 0); }

  // Slab of rows from feature f of the output on.
  Operand from(i64 f, const TileContext& c) const {
    const i64 row = in_tile(operand) ? c.stride : 1;
    const std::byte* const first = read<std::byte>(operand, c);
    const i64 at = f == 0 ? 0 : dims.offset(f) * row;
    return {first + at * static_cast<i64>(size_of(operand.type.dtype)), step() * row, in_tile(operand) ? 1 : 0};
  }
};

TileStep make_elementwise_tile(const TileCall& call, Isa isa, std::string&) {
  if (!in_tile(call.output) || call.inputs.empty()) return nullptr;
  const TileOperand out = call.output;
  const ElementLoop loop =
      element_loop(isa_table(isa), call.op, *call.params, call.inputs[0].type.dtype, out.type.dtype);
  if (loop.run == nullptr) return nullptr;
  std::vector<Run> runs;
  for (const TileOperand& input : call.inputs) runs.emplace_back(input, features_of(out.type));
  const bool flat = std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.is_flat(); });
  const bool mapped = std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.mapped(); });
  const i64 count = feature_count(out.type);
  return [=, size = static_cast<i64>(size_of(out.type.dtype))](const TileContext& c) {
    std::byte* to = written<std::byte>(out, c);
    const auto slab = [&](i64 feature, i64 rows, i64 columns) {
      Operand in[kElementInputs];
      for (std::size_t i = 0; i < runs.size(); ++i) in[i] = runs[i].from(feature, c);
      loop(to + feature * c.stride * size, rows, columns, in);
    };
    if (flat) return slab(0, 1, count * c.stride);
    if (!mapped) return slab(0, count, c.stride);
    for (i64 f = 0; f < count; ++f) slab(f, 1, c.stride);
  };
}

// Maps the elements of each line, or reduces it to one feature.
template <class Real>
TileStep line_tile(const TileCall& call, const IsaTableOf<Real>& table, std::string& reason) {
  const TileOperand x = call.inputs[0], other = call.inputs.back(), out = call.output;
  const LineLoopOf<Real>* const loop = line_loop(table, call.op, other.type.dtype);
  if (loop == nullptr || loop->across == nullptr) return nullptr;
  if (!in_tile(other)) {
    reason = "targets without rows";
    return nullptr;
  }
  const AxisGroups<1> axes({features(x)}, line_axes(*call.params, x.type));
  const std::vector<std::int32_t> lines = elements_of(axes.kept), terms = elements_of(axes.reduced);
  const bool reduces = feature_count(out.type) == static_cast<i64>(lines.size());
  const bool classes = other.type.dtype == DType::i32;
  return [=, run = loop->across](const TileContext& c) {
    LinesOf<Real> one{nullptr, nullptr, nullptr, c.stride, static_cast<i64>(terms.size()), c.stride, terms.data()};
    i64 line = 0;
    for (const std::int32_t feature : lines) {
      const i64 first = feature * c.stride;
      one.x = read<Real>(x, c) + first;
      one.out = written<Real>(out, c) + (reduces ? line : first);
      one.other =
          classes ? reinterpret_cast<const Real*>(read<std::int32_t>(other, c) + line) : read<Real>(other, c) + first;
      run(one);
      line += c.stride;
    }
  };
}
TileStep make_line_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (!in_tile(call.output) || call.inputs.empty()) return nullptr;
  return for_type(call.inputs[0].type.dtype, isa_table(isa),
                  [&](auto, const auto& table) { return line_tile(call, table, reason); });
}

}  // namespace

std::vector<std::int32_t> elements_of(const Dims<1>& dims, std::int64_t offset) {
  std::vector<std::int32_t> elements;
  for_elements(
      dims, [&](std::int64_t, const Offsets<1>& at) { elements.push_back(static_cast<std::int32_t>(offset + at[0])); });
  return elements;
}

View features(const TileOperand& operand) {
  return dense(in_tile(operand) ? features_of(operand.type) : operand.type.shape);
}

TileStep make_tile_step(const TileCall& call, Isa isa, std::string& reason) {
  reason.clear();
  for (const TileOperand& input : call.inputs) {
    if (in_tile(input) && input.type.dtype == DType::u64) reason = "tiles hold no u64";
  }
  if (call.output.type.dtype == DType::u64) reason = "tiles hold no u64";
  if (!reason.empty()) return nullptr;
  for (const auto make : {make_elementwise_tile, make_product_tile, make_reduction_tile, make_line_tile, make_move_tile,
                          make_draw_tile}) {
    TileStep step = make(call, isa, reason);
    if (step != nullptr || !reason.empty()) return step;
  }
  const bool wide = !call.inputs.empty() && call.inputs[0].type.dtype == DType::f64;
  reason = "no kernel runs '" + std::string(name_of(call.op)) + (wide ? "' of f64" : "'") + " over tiles";
  return nullptr;
}

}  // namespace graphrun::cpu
