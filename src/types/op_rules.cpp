#include "types/op_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "graphrun/error.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/program.h"
#include "graphrun/scalar_op.h"
#include "graphrun/view.h"

namespace graphrun {
namespace {

// ---- elements

std::string operand_list(const Operands& context) {
  std::string text;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    text += (text.empty() ? "" : i + 1 == context.inputs.size() ? " and " : ", ") + context.operand(i);
  }
  return text;
}

// Rows of a broadcast result. Only declared rows identify the batch; extents are never compared to find it.
std::int64_t broadcast_rows(const Operands& context, int rank) {
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const TensorType& operand = context.inputs[i];
    if (operand.rows == 0) continue;
    if (operand.shape.rank() < rank) {
      context.fail("shape.rows",
                   fmt::format("{}: broadcasting would pair every row with every other", operand_list(context)),
                   fmt::format("give {} the shape (batch, 1), for instance with reshape({}, shape=[-1, 1])",
                               context.name(i), context.name(i)));
    }
    if (rows != 0 && rows != operand.rows) {
      context.fail("shape.rows", fmt::format("{} have different numbers of rows a sample", operand_list(context)));
    }
    rows = operand.rows;
  }
  if (rows == 0) return 0;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const TensorType& operand = context.inputs[i];
    if (operand.rows == 0 && operand.shape.rank() == rank && operand.shape[0] != 1) {
      context.fail("shape.rows", fmt::format("{}: {} has no batch dimension, but its dimension 0 would meet the batch",
                                             operand_list(context), context.operand(i)));
    }
  }
  return rows;
}

// NumPy broadcasting; the dtypes must be equal. Row operands must align at dimension 0: a row operand of smaller rank
// would pair every row with every other, so it is an error.
TensorType broadcast(const InferContext& context) {
  int rank = 0;
  for (const TensorType& in : context.inputs) {
    rank = std::max(rank, in.shape.rank());
    if (in.dtype != context.inputs[0].dtype) {
      context.fail("dtype.mismatch", fmt::format("{} must have the same dtype", operand_list(context)));
    }
  }
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
  for (const TensorType& in : context.inputs) {
    const int shift = rank - in.shape.rank();
    for (int axis = 0; axis < in.shape.rank(); ++axis) {
      std::int64_t& extent = dims[static_cast<std::size_t>(axis + shift)];
      if (in.shape[axis] == 1 || in.shape[axis] == extent) continue;
      if (extent != 1) {
        context.fail("shape.mismatch",
                     fmt::format("{} do not broadcast: dimension {} of the result would need two extents",
                                 operand_list(context), axis + shift));
      }
      extent = in.shape[axis];
    }
  }
  return {context.inputs[0].dtype, Shape(dims), broadcast_rows(context, rank)};
}

TensorType same(const InferContext& context) {
  return context.inputs[0];
}
TensorType cast(const InferContext& context) {
  return {context.declared.dtype, context.inputs[0].shape, context.inputs[0].rows};
}
TensorType clip(const InferContext& context) {
  const auto& [low, high] = context.params.as<ScalarParams>();
  if (!(low <= high)) context.fail("attribute.range", "'low' must not be above 'high'");
  return same(context);
}
TensorType comparison(const InferContext& context) {
  TensorType out = broadcast(context);
  out.dtype = DType::boolean;
  return out;
}
TensorType where(const InferContext& context) {
  if (context.inputs[1].dtype != context.inputs[2].dtype) {
    context.fail("dtype.mismatch", context.operand(1) + " and " + context.operand(2) + " must have the same dtype");
  }
  std::vector<TensorType> as_values(context.inputs.begin(), context.inputs.end());
  as_values[0].dtype = as_values[1].dtype;
  return broadcast({{as_values, context.names}, context.params, context.declared});
}

TensorType broadcast_to(const InferContext& context) {
  const TensorType& in = context.inputs[0];
  const TensorType out{in.dtype, context.declared.shape, context.declared.rows};
  const int shift = out.shape.rank() - in.shape.rank();
  bool fits = shift >= 0 && (in.rows == 0 || (shift == 0 && in.rows == out.rows));
  for (int axis = 0; fits && axis < in.shape.rank(); ++axis) {
    fits = in.shape[axis] == 1 || in.shape[axis] == out.shape[axis + shift];
  }
  if (!fits) {
    context.fail("shape.mismatch", fmt::format("{} does not broadcast to {}", context.operand(0), to_string(out)));
  }
  return out;
}

// Dimension 0 must stay a multiple of the batch.
TensorType reshape(const InferContext& context) {
  const TensorType& in = context.inputs[0];
  const Shape& shape = context.declared.shape;
  if (in.shape.with_batch(1).elements() != shape.with_batch(1).elements())
    context.fail("shape.mismatch", fmt::format("{} does not fill {}", context.operand(0), to_string(shape)));
  if (in.rows == 0 || in.shape[0] == 0) return {in.dtype, shape, in.rows};
  const std::int64_t first = shape.rank() == 0 ? 0 : shape[0];
  const std::int64_t batch = in.shape[0] / in.rows;
  const std::int64_t rows = batch_rows(in.shape[0]) > 0 ? batch_rows(first) : first % batch == 0 ? first / batch : 0;
  if (rows <= 0) {
    context.fail("shape.rows",
                 fmt::format("{} cannot become {}: dimension 0 must stay a multiple of the batch", context.operand(0),
                             to_string(shape)),
                 "-1 as the first extent is inferred, the batch included");
  }
  return {in.dtype, shape, rows};
}

// ---- products and reductions

// Rows of the product. The batch may be the rows of a plain matrix, contracted away, or a leading dimension.
std::int64_t product_rows(const InferContext& context, const Shape& out) {
  const auto& params = context.params.as<MatmulParams>();
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  const bool a_leads = a.rows > 0 && a.shape.rank() > 2;
  const bool b_leads = b.rows > 0 && b.shape.rank() > 2;
  const std::string product = fmt::format("{} @ {}", context.operand(0), context.operand(1));
  if (a_leads || b_leads) {
    const std::int64_t rows = a_leads ? a.rows : b.rows;
    for (const TensorType& x : context.inputs) {
      const bool leads = x.shape.rank() == out.rank() && x.shape.rank() > 2;
      if (x.rows > 0 ? !leads || x.rows != rows : leads && x.shape[0] != 1) {
        context.fail("shape.rows", product + ": the batch must be the first of the leading dimensions of both");
      }
    }
    return rows;
  }
  if (a.rows > 0 && params.transpose_a) {
    if (b.rows != a.rows || params.transpose_b) {
      context.fail("shape.rows", fmt::format("{} is summed over the batch, so {} must have the same rows",
                                             context.operand(0), context.operand(1)));
    }
    return 0;
  }
  if (b.rows > 0) {
    context.fail("shape.rows", product + ": the batch of the second operand would become a column",
                 "the batch belongs to the left operand: x @ W");
  }
  if (a.rows > 0 && out.rank() > 2) context.fail("shape.rows", product + ": the batch would no longer be dimension 0");
  return a.rows;
}

void append_leading(const InferContext& context, Shape& out) {
  const Shape& a = context.inputs[0].shape;
  const Shape& b = context.inputs[1].shape;
  const int rank = std::max(a.rank(), b.rank());
  for (int axis = 0; axis < rank - 2; ++axis) {
    const int in_a = axis - (rank - a.rank());
    const int in_b = axis - (rank - b.rank());
    const std::int64_t of_a = in_a < 0 ? 1 : a[in_a];
    const std::int64_t of_b = in_b < 0 ? 1 : b[in_b];
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      context.fail("shape.mismatch",
                   fmt::format("{} @ {}: the leading dimensions do not broadcast, {} against {}", context.operand(0),
                               context.operand(1), extent_text(of_a), extent_text(of_b)));
    }
    out.push_back(of_a == 1 ? of_b : of_a);
  }
}

TensorType matmul(const InferContext& context) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (context.inputs[i].shape.rank() < 2) {
      context.fail("shape.rank", fmt::format("{} must have at least 2 dimensions", context.operand(i)),
                   fmt::format("reshape({}, shape=[-1, 1]) makes a column of a vector", context.name(i)));
    }
  }
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  if (a.dtype != b.dtype) context.fail("dtype.mismatch", operand_list(context) + " must have the same dtype");
  const auto& [transpose_a, transpose_b, precision] = context.params.as<MatmulParams>();
  const int ra = a.shape.rank();
  const int rb = b.shape.rank();
  const std::int64_t k_a = a.shape[ra - (transpose_a ? 2 : 1)];
  const std::int64_t k_b = b.shape[rb - (transpose_b ? 1 : 2)];
  if (k_a != k_b) {
    const bool batch_b = b.rows > 0 && rb == 2 && !transpose_b;
    const std::string inner_b = batch_b ? "the batch" : extent_text(k_b);
    context.fail("shape.mismatch",
                 fmt::format("{} @ {}: the inner extents differ, {} against {}", context.operand(0), context.operand(1),
                             a.rows > 0 && ra == 2 && transpose_a ? "the batch" : extent_text(k_a), inner_b),
                 batch_b ? "the batch belongs to the left operand: x @ W" : "");
  }
  TensorType out{a.dtype, {}, 0};
  append_leading(context, out.shape);
  out.shape.push_back(a.shape[ra - (transpose_a ? 1 : 2)]);
  out.shape.push_back(b.shape[rb - (transpose_b ? 2 : 1)]);
  out.rows = product_rows(context, out.shape);
  return out;
}

TensorType reduce(const InferContext& context) {
  const auto& [axes, keepdims] = context.params.as<ReduceParams>();
  const TensorType& in = context.inputs[0];
  if (axes >> in.shape.rank() != 0)
    context.fail("attribute.axis", fmt::format("{} has not all of the axes {:#b}", context.operand(0), axes));
  TensorType out{in.dtype, {}, (axes & 1u) != 0 ? 0 : in.rows};
  for (int axis = 0; axis < in.shape.rank(); ++axis) {
    const bool reduced = (axes >> axis & 1u) != 0;
    if (!reduced) out.shape.push_back(in.shape[axis]);
    if (reduced && keepdims) out.shape.push_back(1);
  }
  return out;
}

// ---- ops along one axis other than the batch

int axis_of(const InferContext& context, std::string_view why) {
  const int axis = context.params.as<AxisParams>().axis;
  require_axis(context, axis, why);
  return axis;
}

TensorType along_axis(const InferContext& context) {
  axis_of(context, "; samples are independent");
  return context.inputs[0];
}

TensorType position(const InferContext& context) {
  const TensorType& in = context.inputs[0];
  const int axis = axis_of(context, "; a sample's index in it means nothing");
  if (in.shape[axis] == 0)
    context.fail("shape.empty", fmt::format("{} is empty along axis {}", context.operand(0), axis));
  TensorType out{DType::i32, {}, in.rows};
  for (int i = 0; i < in.shape.rank(); ++i) {
    if (i != axis) out.shape.push_back(in.shape[i]);
  }
  return out;
}

TensorType cross_entropy(const InferContext& context) {
  const TensorType& logits = context.inputs[0];
  const TensorType& target = context.inputs[1];
  if (logits.shape.rank() == 0 || (logits.shape.rank() == 1 && logits.rows > 0)) {
    context.fail("shape.rank", fmt::format("{} must have classes along its last axis", context.operand(0)));
  }
  TensorType out{logits.dtype, {}, logits.rows};
  for (int axis = 0; axis + 1 < logits.shape.rank(); ++axis) out.shape.push_back(logits.shape[axis]);
  const bool one_hot = target.dtype == logits.dtype && target.shape == logits.shape;
  const bool classes = target.dtype == DType::i32 && target.shape == out.shape;
  if ((!one_hot && !classes) || target.rows != logits.rows) {
    context.fail("shape.mismatch", fmt::format("{} and {}: the target must be one-hot {} or class numbers {}",
                                               context.operand(0), context.operand(1), to_string(logits),
                                               to_string(TensorType{DType::i32, out.shape, out.rows})));
  }
  return out;
}

TensorType transpose(const InferContext& context) {
  const auto& axes = context.params.as<PermuteParams>().axes;
  const TensorType& in = context.inputs[0];
  TensorType out{in.dtype, {}, in.rows};
  std::uint32_t seen = 0;
  for (int i = 0; i < in.shape.rank(); ++i) {
    if (axes[i] < 0 || axes[i] >= in.shape.rank() || (seen >> axes[i] & 1u) != 0)
      context.fail("attribute.axis", fmt::format("'axes' must name each axis of {} once", context.operand(0)));
    seen |= 1u << axes[i];
    out.shape.push_back(in.shape[axes[i]]);
  }
  if (in.rows > 0 && axes[0] != 0)
    context.fail("shape.rows", fmt::format("{}: the batch must stay dimension 0", context.operand(0)));
  return out;
}

// Fails unless the types agree but for the axis, where elements [first, first + extent of `part`) are in `whole`.
void require_part(const InferContext& context, const TensorType& whole, const TensorType& part, int axis,
                  std::int64_t first) {
  require_axis(context, axis, kNotCut);
  const bool same_rank = part.shape.rank() == whole.shape.rank();
  TensorType wanted = whole;
  if (same_rank) wanted.shape[axis] = part.shape[axis];
  if (!same_rank || !(wanted == part) || first < 0 || first > whole.shape[axis] ||
      part.shape[axis] > whole.shape[axis] - first)
    context.fail("shape.mismatch", fmt::format("{} is not in {} from {} on", to_string(part), to_string(whole), first));
}
TensorType slice(const InferContext& context) {
  const auto& [axis, start] = context.params.as<SliceParams>();
  require_part(context, context.inputs[0], context.declared, axis, start);
  return context.declared;
}
TensorType pad(const InferContext& context) {
  const auto& [axis, before, value] = context.params.as<PadParams>();
  require_part(context, context.declared, context.inputs[0], axis, before);
  return context.declared;
}

TensorType concat(const InferContext& context) {
  TensorType out = context.inputs[0];
  const int axis = axis_of(context, kNotCut);
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    TensorType other = context.inputs[i];
    const bool same_rank = other.shape.rank() == out.shape.rank();
    const std::int64_t extent = same_rank ? other.shape[axis] : 0;
    if (same_rank) other.shape[axis] = out.shape[axis];
    if (!(other == out)) {
      context.fail("shape.mismatch",
                   fmt::format("{} and {} must agree but for axis {}", context.operand(0), context.operand(i), axis));
    }
    out.shape[axis] = std::min(out.shape[axis] + extent, kMaxElements + 1);  // cannot overflow
  }
  return out;
}

// The windows of a value, or a failure if it has not the axes or a window does not fit. `noun` names the value.
TensorType windows_of(const InferContext& context, const TensorType& of, const std::string& noun) {
  const auto& params = context.params.as<WindowParams>();
  const int first = of.shape.rank() - 1 - params.axes;
  if (first < (of.rows > 0 ? 1 : 0) || of.shape.rank() + params.axes > kMaxRank) {
    context.fail("shape.rank",
                 fmt::format("{} must have {} axes between the batch and its last axis, and at most {} in "
                             "all with the windows",
                             noun, params.axes, kMaxRank));
  }
  for (int i = 0; i < params.axes; ++i) {
    if (params.windows(i, of.shape[first + i]) > 0) continue;
    context.fail("shape.mismatch", fmt::format("{}: a window of {} elements, {} apart, does not fit into axis {}", noun,
                                               params.size[i], params.dilation[i], first + i));
  }
  return {of.dtype, windowed(View{of.shape}, params).extents, of.rows};
}
TensorType windows(const InferContext& context) {
  return windows_of(context, context.inputs[0], context.operand(0));
}
TensorType fold(const InferContext& context) {
  const TensorType out{context.inputs[0].dtype, context.declared.shape, context.inputs[0].rows};
  if (const TensorType read = windows_of(context, out, "the result " + to_string(out)); !(read == context.inputs[0])) {
    context.fail("shape.mismatch",
                 fmt::format("{} must be the windows of {}: {}", context.operand(0), to_string(out), to_string(read)));
  }
  return out;
}

// ---- tables

// An extent of the output that operands and parameters leave open.
std::int64_t declared_extent(const InferContext& context, int axis) {
  const Shape& shape = context.declared.shape;
  if (axis >= shape.rank())
    context.fail("shape.rank", fmt::format("its output {} has no axis {}", to_string(shape), axis));
  return shape[axis];
}

TensorType one_hot(const InferContext& context) {
  TensorType out = context.inputs[0];
  out.dtype = DType::f32;
  out.shape.push_back(declared_extent(context, out.shape.rank()));
  return out;
}

TensorType gather(const InferContext& context) {
  const TensorType& table = context.inputs[0];
  const TensorType& indices = context.inputs[1];
  if (table.shape.rank() != 2 || table.rows > 0) {
    context.fail("shape.rank", fmt::format("{} must be a table (entries, width) without a batch", context.operand(0)));
  }
  TensorType out{table.dtype, indices.shape, indices.rows};
  out.shape.push_back(table.shape[1]);
  return out;
}

TensorType scatter_add(const InferContext& context) {
  const TensorType& indices = context.inputs[0];
  const TensorType& updates = context.inputs[1];
  const int rank = indices.shape.rank();
  bool each = updates.shape.rank() == rank + 1 && updates.rows == indices.rows;
  for (int axis = 0; each && axis < rank; ++axis) each = updates.shape[axis] == indices.shape[axis];
  if (!each) {
    context.fail("shape.mismatch", fmt::format("{} must have the shape of {} and one axis more: a row for each index",
                                               context.operand(1), context.operand(0)));
  }
  return {updates.dtype, {declared_extent(context, 0), updates.shape[rank]}, 0};
}

// ---- batches, counters, random samples

TensorType minibatch(const InferContext& context) {
  const auto& params = context.params.as<MinibatchParams>();
  TensorType type = context.inputs[0];
  if (type.shape.rank() == 0 || type.rows != 0) {
    context.fail("shape.data", fmt::format("{} must be a data set with samples along dimension 0", context.operand(0)));
  }
  const std::int64_t samples = type.shape[0];
  const std::int64_t capacity = params.capacity > 0 ? params.rows() : kBatch;
  if (samples == 0 || samples != params.total || (params.drop_last && samples < params.capacity)) {
    context.fail("shape.data", fmt::format("{} has {} samples, which make no batch of {}", context.operand(0), samples,
                                           extent_text(capacity)));
  }
  type.shape[0] = capacity;
  type.rows = 1;
  return type;
}

TensorType solve_spd(const InferContext& context) {
  const TensorType &A = context.inputs[0], &b = context.inputs[1], &shift = context.inputs[2];
  if (A.dtype != b.dtype || A.dtype != shift.dtype)
    context.fail("dtype.mismatch", operand_list(context) + " must have the same dtype");
  for (std::size_t i = 0; i < 3; ++i)
    if (context.inputs[i].rows > 0)
      context.fail("shape.rows", fmt::format("{} must not depend on the batch", context.operand(i)));
  if (A.shape.rank() != 2 || A.shape[0] != A.shape[1])
    context.fail("shape.square", fmt::format("{} must be a square matrix", context.operand(0)));
  if (b.shape.rank() != 1 || b.shape[0] != A.shape[0]) {
    context.fail("shape.mismatch",
                 fmt::format("{} must have as many elements as {} has rows", context.operand(1), context.operand(0)));
  }
  if (shift.shape.rank() != 0) context.fail("shape.scalar", fmt::format("{} must be a scalar", context.operand(2)));
  return b;
}

TensorType row_count(const InferContext&) {
  return {DType::i32, {}, 0};
}

TensorType record(const InferContext& context) {
  const TensorType& ring = context.inputs[0];
  if (ring.dtype != DType::f32 || ring.shape.rank() != 1 || ring.shape[0] == 0 || ring.rows > 0) {
    context.fail("shape.ring", fmt::format("{} must be f32 with one dimension that is not empty", context.operand(0)));
  }
  if (!(context.inputs[1] == TensorType{DType::f32, {}, 0}))
    context.fail("shape.scalar", fmt::format("{} must be a scalar f32", context.operand(1)));
  return ring;
}

TensorType assign(const InferContext& context) {
  if (!(context.inputs[0] == context.inputs[1])) {
    context.fail("shape.assign", fmt::format("{} cannot take {}", context.operand(0), context.operand(1)));
  }
  return context.inputs[0];
}

TensorType random_normal(const InferContext& context) {
  return {DType::f32, context.declared.shape, context.declared.rows};
}

TensorType random_uniform(const InferContext& context) {
  const auto& params = context.params.as<RandomParams>();
  if (!(params.a <= params.b)) context.fail("attribute.range", "'low' must not be above 'high'");
  return random_normal(context);
}

TensorType divide_step(const InferContext& context) {
  const double every = context.params.as<ScalarParams>().a;
  if (!(every >= 1 && every <= std::numeric_limits<std::int32_t>::max()))
    context.fail("attribute.range", "'every' must be from 1 to 2^31 - 1");
  return same(context);
}

TensorType permutation(const InferContext& context) {
  const std::int64_t n = declared_extent(context, 0);
  if (n > std::numeric_limits<std::int32_t>::max()) {
    context.fail("attribute.range", "'n' must be below 2^31: the numbers are i32");
  }
  return {DType::i32, {n}, 0};
}

TensorType dropout(const InferContext& context) {
  const double rate = context.params.as<RandomParams>().a;
  if (!(rate >= 0 && rate < 1)) context.fail("attribute.range", fmt::format("a rate of {}", rate));
  return same(context);
}

// Fault in parameters that no graph has, or "": attributes exclude it, or binding the batch does.
std::string params_fault(const Params& params) {
  const auto* batches = params.get_if<MinibatchParams>();
  if (batches != nullptr &&
      (batches->capacity < 1 || batches->capacity > kMaxBatch || batches->total < 1 || batches->total > kMaxElements ||
       batches->shards < 1 || batches->batches() < 1 || !(batches->divisor >= 0 && std::isfinite(batches->divisor))))
    return fmt::format("{} rows in batches of {}", batches->total, batches->capacity);
  const auto* shards = params.get_if<ShardParams>();
  if (shards != nullptr &&
      (shards->shards < 1 || shards->combine < 0 || shards->combine > static_cast<int>(CombineOp::min)))
    return fmt::format("{} shards combined by {}", shards->shards, shards->combine);
  const auto* product = params.get_if<MatmulParams>();
  if (product != nullptr && product->precision > Precision::tf32) return "it has no such precision";
  if (const auto* windows = params.get_if<WindowParams>()) {
    if (windows->axes < 1 || windows->axes > kMaxWindowAxes) return fmt::format("windows over {} axes", windows->axes);
    for (int i = 0; i < kMaxWindowAxes; ++i)
      if (windows->size[i] < 1 || windows->stride[i] < 1 || windows->dilation[i] < 1)
        return fmt::format("windows of {} elements, {} apart, each {} after the last", windows->size[i],
                           windows->dilation[i], windows->stride[i]);
  }
  const auto* scalars = params.get_if<ScalarParams>();
  const auto* random = params.get_if<RandomParams>();
  const double a = scalars != nullptr ? scalars->a : random != nullptr ? random->a : 0;
  const double b = scalars != nullptr ? scalars->b : random != nullptr ? random->b : 0;
  return std::isfinite(a) && std::isfinite(b) ? "" : fmt::format("parameters {} and {}", a, b);
}

struct OpRule {
  OpTraits traits = {};
  TensorType (*infer)(const InferContext&) = nullptr;  // null: a source or a state
  bool elementwise = false;
};
struct NamedRule {
  Op op;
  OpRule rule;
};
constexpr NamedRule kStructured[] = {
    {Op::minibatch, {{"TU>T", params_kind<MinibatchParams>}, minibatch}},
    {Op::row_count, {{"U>I", params_kind<MinibatchParams>}, row_count, true}},
    {Op::increment, {{"U>U", params_kind<NoParams>, Overlay::reuse}, same, true}},
    {Op::record, {{"SSU>S", params_kind<NoParams>, Overlay::state}, record, true}},
    {Op::assign, {{"TT>T", params_kind<NoParams>, Overlay::state}, assign, true}},
    {Op::where, {{"BTT>T", params_kind<NoParams>, Overlay::reuse}, where, true}},
    {Op::matmul, {{"FF>F", params_kind<MatmulParams>, Overlay::none, CombineOp::sum}, matmul}},
    {family_op::solve_spd, {{"FFF>F"}, solve_spd}},
    {Op::sum, {{"F>F", params_kind<ReduceParams>, Overlay::none, CombineOp::sum}, reduce}},
    {Op::max, {{"F>F", params_kind<ReduceParams>, Overlay::none, CombineOp::max}, reduce}},
    {Op::min, {{"F>F", params_kind<ReduceParams>, Overlay::none, CombineOp::min}, reduce}},
    {Op::prod, {{"F>F", params_kind<ReduceParams>, Overlay::none, CombineOp::product}, reduce}},
    {Op::logsumexp, {{"F>F", params_kind<ReduceParams>}, reduce}},
    {Op::argmax, {{"F>I", params_kind<AxisParams>}, position}},
    {Op::argmin, {{"F>I", params_kind<AxisParams>}, position}},
    {family_op::softmax, {{"F>F", params_kind<AxisParams>, Overlay::reuse}, along_axis}},
    {family_op::log_softmax, {{"F>F", params_kind<AxisParams>, Overlay::reuse}, along_axis}},
    {family_op::softmax_cross_entropy, {{"FL>F"}, cross_entropy}},
    {Op::reshape, {{"T>T"}, reshape}},
    {family_op::stop_gradient, {{"T>T"}, same}},
    {Op::broadcast_to, {{"T>T"}, broadcast_to, true}},
    {Op::cast, {{"A>A"}, cast, true}},
    {Op::transpose, {{"T>T", params_kind<PermuteParams>}, transpose}},
    {Op::slice, {{"T>T", params_kind<SliceParams>}, slice}},
    {Op::pad, {{"F>F", params_kind<PadParams>}, pad}},
    {Op::concat, {{"T+>T", params_kind<AxisParams>}, concat}},
    {family_op::varying_minibatch, {{"TUU>T", params_kind<MinibatchParams>}, minibatch}},
    {family_op::varying_row_count, {{"UU>I", params_kind<MinibatchParams>}, row_count}},
    {family_op::windows, {{"T>T", params_kind<WindowParams>}, windows}},
    {family_op::fold, {{"F>F", params_kind<WindowParams>}, fold}},
    {family_op::one_hot, {{"I>S"}, one_hot}},
    {family_op::gather, {{"TI>T"}, gather}},
    {Op::scatter_add, {{"IF>F", params_kind<NoParams>, Overlay::none, CombineOp::sum}, scatter_add}},
    {family_op::random_uniform, {{"U>S", params_kind<RandomParams>}, random_uniform}},
    {family_op::random_normal, {{"U>S", params_kind<RandomParams>}, random_normal}},
    {family_op::permutation, {{"U>I", params_kind<RandomParams>}, permutation}},
    {Op::dropout, {{"FU>F", params_kind<RandomParams>, Overlay::reuse}, dropout}},
    {family_op::divide_step, {{"U>U", params_kind<ScalarParams>, Overlay::reuse}, divide_step, true}},
    {Op::shard_step, {{"UU>U", params_kind<ShardParams>}, same}},
    {Op::combine_shards, {{"F>F", params_kind<ShardParams>, Overlay::reuse}, same}},
};

// The table below evaluates this at compile time, so a missing op is a compile error.
constexpr OpRule rule(Op op) {
  switch (static_cast<std::uint16_t>(op)) {
#define GRAPHRUN_SOURCE(name) case static_cast<std::uint16_t>(Op::name):
#define GRAPHRUN_CASE(name, ...) case static_cast<std::uint16_t>(scalar_op::name):
    GRAPHRUN_SOURCE_OPS(GRAPHRUN_SOURCE)
    return {};
    GRAPHRUN_PLAIN_OPS(GRAPHRUN_CASE)
    return {{"F>F", params_kind<NoParams>, Overlay::reuse}, same, true};
    GRAPHRUN_PARAMETRIC_OPS(GRAPHRUN_CASE)
    return {{"F>F", params_kind<ScalarParams>, Overlay::reuse}, op == scalar_op::clip ? clip : same, true};
    GRAPHRUN_BINARY_OPS(GRAPHRUN_CASE)
    return {{"FF>F", params_kind<NoParams>, Overlay::reuse}, broadcast, true};
    GRAPHRUN_COMPARE_OPS(GRAPHRUN_CASE)
    return {{"TT>B"}, comparison, true};
    GRAPHRUN_LOGICAL_OPS(GRAPHRUN_CASE)
    return {{op == scalar_op::logical_not ? "B>B" : "BB>B", params_kind<NoParams>, Overlay::reuse}, broadcast, true};
#undef GRAPHRUN_CASE
#undef GRAPHRUN_SOURCE
    default:
      for (const NamedRule& one : kStructured)
        if (one.op == op) return one.rule;
      throw std::logic_error("an op without traits");
  }
}

constexpr std::string_view kNoOp = "?";
struct Row {
  std::string_view name = kNoOp;
  OpRule rule = {};
};
// Indexed by op number; the last row is for all unknown, larger numbers.
constexpr auto kRows = [] {
  std::array<Row, kOps + 1> rows;
#define GRAPHRUN_ROW(list, name) rows[static_cast<std::size_t>(list::name)] = {#name, rule(list::name)};
#define GRAPHRUN_CORE_ROW(name) GRAPHRUN_ROW(Op, name)
#define GRAPHRUN_FAMILY_ROW(name) GRAPHRUN_ROW(family_op, name)
#define GRAPHRUN_SCALAR_ROW(name, ...) GRAPHRUN_ROW(scalar_op, name)
  GRAPHRUN_SOURCE_OPS(GRAPHRUN_CORE_ROW)
  GRAPHRUN_STRUCTURED_OPS(GRAPHRUN_CORE_ROW)
  GRAPHRUN_FAMILY_OPS(GRAPHRUN_FAMILY_ROW)
  GRAPHRUN_SCALAR_OPS(GRAPHRUN_SCALAR_ROW)
#undef GRAPHRUN_ROW
#undef GRAPHRUN_CORE_ROW
#undef GRAPHRUN_FAMILY_ROW
#undef GRAPHRUN_SCALAR_ROW
  return rows;
}();

const Row& row_of(Op op) {
  return kRows[std::min(static_cast<std::size_t>(op), kOps)];
}

// Fails unless each operand has a dtype of its letter. Rules compare the dtypes of operands with each other.
void require_dtypes(Op op, std::string_view letters, const Operands& context) {
  const std::size_t last = letters.find_first_of("+>") - 1;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const char letter = letters[std::min(i, last)];
    const TensorType& type = context.inputs[i];
    const auto fail = [&](std::string code, std::string_view wanted, std::string hint = {}) {
      context.fail(std::move(code), fmt::format("{} must be {}", context.operand(i), wanted), std::move(hint));
    };
    if (letter == 'F' && !is_float(type.dtype)) fail("dtype.float", "f32 or f64", "cast(…, dtype=f32) converts");
    if (letter == 'B' && type.dtype != DType::boolean)
      fail("dtype.bool", "bool", op == Op::where ? "" : "a comparison such as x > 0 gives bool");
    if (letter == 'I' && type.dtype != DType::i32)
      fail("dtype.i32", op == family_op::one_hot ? "i32 class numbers" : "i32 indices");
    if (letter == 'U' && (type.dtype != DType::u64 || type.shape.rank() != 0)) fail("shape.scalar", "a scalar u64");
  }
}

}  // namespace

std::string_view name_of(Op op) {
  return row_of(op).name;
}

std::optional<Op> find_op(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.name == name; });
  return found == kRows.end() || name == kNoOp ? std::nullopt : std::optional(static_cast<Op>(found - kRows.begin()));
}

const OpTraits& traits_of(Op op) {
  return row_of(op).rule.traits;
}

bool is_elementwise(Op op) {
  return row_of(op).rule.elementwise;
}

void Operands::fail(std::string code, std::string message, std::string hint) const {
  throw Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint));
}
std::string Operands::name(std::size_t i) const {
  return names.empty() ? fmt::format("operand {}", i + 1) : names[i];
}
std::string Operands::operand(std::size_t i) const {
  return fmt::format("{} {}", name(i), to_string(inputs[i]));
}

void require_axis(const Operands& context, std::int64_t axis, std::string_view why) {
  const TensorType& in = context.inputs[0];
  if (axis < 0 || axis >= in.shape.rank())
    context.fail("attribute.axis", fmt::format("axis {} is out of range for {}", axis, context.operand(0)));
  if (axis == 0 && in.rows > 0)
    context.fail("shape.rows", fmt::format("{}: axis 0 is the batch{}", context.operand(0), why));
}

TensorType infer_type(Op op, const InferContext& context) {
  const OpRule& rule = row_of(op).rule;
  require_dtypes(op, rule.traits.dtypes, context);
  return rule.infer(context);
}

std::string step_fault(Op op, std::span<const TensorType> inputs, const TensorType& output, const Params& params) {
  const OpTraits& traits = traits_of(op);
  if (traits.dtypes.empty()) return "it is not an op of a step";
  const std::size_t operands = traits.dtypes.find_first_of("+>");
  const bool more = traits.dtypes[operands] == '+';
  if (more ? inputs.size() < operands : inputs.size() != operands)
    return fmt::format("it takes {}{} operands, {} are given", more ? "at least " : "", operands, inputs.size());
  if (inputs.size() > kMaxOperands)
    return fmt::format("it takes at most {} operands, {} are given", kMaxOperands, inputs.size());
  if (params.kind() != traits.params) return "its parameters are those of another op";
  if (std::string fault = params_fault(params); !fault.empty()) return fault;
  try {
    const TensorType type = infer_type(op, {{inputs}, params, output});
    return type == output ? "" : fmt::format("its output is {}, not {}", to_string(output), to_string(type));
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
}

}  // namespace graphrun
