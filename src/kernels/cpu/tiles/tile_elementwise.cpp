// tile_elementwise.cpp: elementwise ops and casts on tiles, where such an op is one long loop.
#include <algorithm>

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

}  // namespace

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

}  // namespace graphrun::cpu
