#include "export/c/steps.h"

#include <fmt/format.h>

#include "export/c/loops.h"
#include "export/c/text.h"
#include "graphrun/family_op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"

namespace graphrun::c99 {
namespace {

using BufferExpression = std::function<std::string(BufferId)>;

class StepText {
 public:
  StepText(const Program& program, const Step& step, const BufferExpression& place, Functions& functions)
      : program_(program), step_(step), place_(place), functions_(functions) {}

  Statement write() {
    const TensorType& to = type(step_.output);
    bool has_u64 = to.dtype == DType::u64;
    for (const BufferId id : step_.inputs) has_u64 = has_u64 || type(id).dtype == DType::u64;
    if (has_u64) return {"", fmt::format("the op {}, which has operands of u64,", graphrun::name_of(step_.op))};
    if (to.shape.elements() == 0)
      return {"", fmt::format("the op {}, which has no elements,", graphrun::name_of(step_.op))};
    const Op op = step_.op;
    if (op == Op::reshape) return reshape();
    if (op == Op::broadcast_to) return copy(view(0), to_view());
    if (op == Op::cast) return copy(view(0), to_view());
    if (op == Op::transpose) return copy(permuted(view(0), step_.params.as<PermuteParams>().axes), to_view());
    if (op == Op::slice) {
      const auto& params = step_.params.as<SliceParams>();
      return copy(sliced(view(0), params.axis, params.start, to.shape[params.axis]), to_view());
    }
    if (op == family_op::windows) return copy(windowed(view(0), step_.params.as<WindowParams>()), to_view());
    if (op == family_op::fold) return fold();
    if (op == Op::pad) return pad();
    if (op == Op::concat) return concat();
    if (op == Op::matmul) return matmul();
    if (op == family_op::gather) return gather();
    if (op == family_op::one_hot) return one_hot();
    if (step_.params.get_if<ReduceParams>() != nullptr) return reduce();
    if (step_.params.get_if<AxisParams>() != nullptr) return along_axis();
    return scalar();
  }

 private:
  const TensorType& type(BufferId id) const { return program_.buffers[id].type; }
  View view(std::size_t input) const {
    View result = view_of(program_.buffers[step_.inputs[input]]);
    result.offset = 0;
    return result;
  }
  View to_view() const { return dense(type(step_.output).shape); }
  std::string in(std::size_t input) const { return place_(step_.inputs[input]); }
  std::string out() const { return place_(step_.output); }
  static std::string offset(const std::string& base, std::int64_t elements) {
    return elements == 0 ? base : fmt::format("{} + {}", base, elements);
  }
  Statement none() const { return {"", "the op " + std::string(graphrun::name_of(step_.op))}; }

  Statement reshape() const {
    const Buffer& from = program_.buffers[step_.inputs[0]];
    const Buffer& to = program_.buffers[step_.output];
    if (storage_root(program_, step_.inputs[0]) == storage_root(program_, step_.output) && from.offset == to.offset &&
        is_dense(view_of(from)))
      return {};
    View target = dense(from.type.shape);  // contiguous, in row-major order
    return copy(view(0), target);
  }

  Statement copy(const View& from, const View& to, std::size_t input = 0) const {
    std::vector<Axis> axes = merged({from.extents == to.extents ? from : broadcast(from, to.extents), to});
    const Axis run = take_last(axes, 2);
    const Loops around = loops(axes, {offset(in(input), from.offset), offset(out(), to.offset)});
    const std::string name = functions_.cast(type(step_.inputs[input]).dtype, type(step_.output).dtype);
    return {fmt::format("{}{}({}, {}, {}, {}, {});", around.text, name, around.places[0], run.strides[0],
                        around.places[1], run.strides[1], run.extent),
            ""};
  }

  Statement pad() const {
    const auto& params = step_.params.as<PadParams>();
    const View from = view(0), to = to_view();
    const std::string fill = fmt::format("{}({}, {}, 1, {});", functions_.fill(type(step_.output).dtype),
                                         literal(params.value), out(), to.extents.elements());
    return {fill + " " + copy(from, sliced(to, params.axis, params.before, from.extents[params.axis])).text, ""};
  }

  Statement fold() const {
    const View to = windowed(to_view(), step_.params.as<WindowParams>());
    const Loops around = loops(merged({view(0), to}), {in(0), out()});
    return {fmt::format("{}({}, {}, 1, {}); {}*({}) += *({});", functions_.fill(type(step_.output).dtype), literal(0),
                        out(), to_view().extents.elements(), around.text, around.places[1], around.places[0]),
            ""};
  }

  Statement concat() const {
    const int axis = step_.params.as<AxisParams>().axis;
    std::string text;
    std::int64_t start = 0;
    for (std::size_t k = 0; k < step_.inputs.size(); ++k) {
      const View from = view(k);
      text += (k > 0 ? " " : "") + copy(from, sliced(to_view(), axis, start, from.extents[axis]), k).text;
      start += from.extents[axis];
    }
    return {text, ""};
  }

  Statement matmul() const {
    const auto& params = step_.params.as<MatmulParams>();
    const View a = params.transpose_a ? transposed(view(0)) : view(0);
    const View b = params.transpose_b ? transposed(view(1)) : view(1);
    const Shape& c = type(step_.output).shape;
    const int row_a = a.extents.rank() - 2, row_b = b.extents.rank() - 2;
    const std::int64_t m = c[c.rank() - 2], n = c[c.rank() - 1], k = a.extents[row_a + 1];
    std::vector<Axis> axes = matrices(a, b);
    for (Axis& axis : axes) axis.strides[2] *= m * n;
    const Loops around = loops(axes, {in(0), in(1), out()});
    return {fmt::format("{}{}({}, {}, {}, {}, {}, {}, {}, {}, {}, {});", around.text,
                        functions_.matmul(type(step_.output).dtype), around.places[0], a.strides[row_a],
                        a.strides[row_a + 1], around.places[1], b.strides[row_b], b.strides[row_b + 1],
                        around.places[2], m, n, k),
            ""};
  }

  // Splits the axes by the mask; the result is contiguous in the order of the kept axes.
  struct Parts {
    std::vector<Axis> kept, reduced;
  };
  static Parts parts(const View& from, std::uint32_t mask, bool keeps_extent) {
    View to = from;
    std::int64_t stride = 1;
    for (int axis = from.extents.rank() - 1; axis >= 0; --axis) {
      const bool is_reduced = (mask >> axis & 1u) != 0;
      to.strides[axis] = is_reduced && !keeps_extent ? 0 : stride;
      if (!is_reduced || keeps_extent) stride *= from.extents[axis];
    }
    return {merged({from, to}, ~mask), merged({from, to}, mask)};
  }

  Statement reduce() const {
    const DType dtype = type(step_.output).dtype;
    const std::string name = functions_.reduction(step_.op, dtype);
    const std::uint32_t mask = step_.params.as<ReduceParams>().axes;
    if (name.empty() || type(step_.inputs[0]).dtype != dtype) return none();
    Parts axes = parts(view(0), mask, false);
    if (axes.reduced.size() > 2)
      return {"", fmt::format("{} over {} axes apart", graphrun::name_of(step_.op), axes.reduced.size())};
    const Axis inner = take_last(axes.reduced, 2), outer = take_last(axes.reduced, 2);
    const Loops around = loops(axes.kept, {in(0), out()});
    return {fmt::format("{}{}({}, {}, {}, {}, {}, {});", around.text, name, around.places[0], outer.extent,
                        outer.strides[0], inner.extent, inner.strides[0], around.places[1]),
            ""};
  }

  Statement along_axis() const {
    const std::string name = functions_.along_axis(step_.op, type(step_.inputs[0]).dtype);
    if (name.empty()) return none();
    const int axis = step_.params.as<AxisParams>().axis;
    const View from = view(0);
    const bool keeps = step_.op == family_op::softmax || step_.op == family_op::log_softmax;
    Parts axes = parts(from, 1u << axis, keeps);
    const Axis line = take_last(axes.reduced, 2);
    const Loops around = loops(axes.kept, {in(0), out()});
    return {fmt::format("{}{}({}, {}, {}, {}, {});", around.text, name, around.places[0], line.strides[0], line.extent,
                        around.places[1], line.strides[1]),
            ""};
  }

  // Iterates over indices with any order of axes: outer loops, pointer and stride of the innermost axis, and the
  // pointer into the output, which has `width` elements per index.
  struct Indices {
    std::string loops, index, result;
    Axis run;
  };
  Indices indices(std::size_t input, std::int64_t width) const {
    const View from = view(input);
    View to = dense(from.extents);
    for (int axis = 0; axis < from.extents.rank(); ++axis) to.strides[axis] *= width;
    std::vector<Axis> axes = merged({from, to});
    const Axis run = take_last(axes, 2);
    const Loops around = loops(axes, {in(input), out()});
    return {around.text, around.places[0], around.places[1], run};
  }

  Statement gather() const {
    const View table = view(0);
    const Indices at = indices(1, table.extents[1]);
    return {fmt::format("{}{}({}, {}, {}, {}, {}, {}, {}, {}, {});", at.loops,
                        functions_.gather(type(step_.output).dtype), in(0), table.extents[0], table.extents[1],
                        table.strides[0], table.strides[1], at.index, at.run.strides[0], at.result, at.run.extent),
            ""};
  }

  Statement one_hot() const {
    const Shape& to = type(step_.output).shape;
    const std::int64_t classes = to[to.rank() - 1];
    const Indices at = indices(0, classes);
    return {fmt::format("{}{}({}, {}, {}, {}, {});", at.loops, functions_.one_hot(type(step_.output).dtype), at.index,
                        at.run.strides[0], classes, at.result, at.run.extent),
            ""};
  }

  Statement scalar() const {
    if (!is_elementwise(step_.op) || step_.inputs.size() > 3) return none();
    std::vector<DType> dtypes;
    for (const BufferId id : step_.inputs) dtypes.push_back(type(id).dtype);
    const std::string name = functions_.scalar(step_.op, dtypes, type(step_.output).dtype);
    if (name.empty()) return none();
    const View to = to_view();
    std::vector<View> views;
    std::vector<std::string> bases;
    for (std::size_t k = 0; k < step_.inputs.size(); ++k) {
      views.push_back(broadcast(view(k), to.extents));
      bases.push_back(in(k));
    }
    views.push_back(to);
    bases.push_back(out());
    std::vector<Axis> axes = merged(views);
    const Axis run = take_last(axes, views.size());
    const Loops around = loops(axes, bases);
    std::string text = fmt::format("{}{}(", around.text, name);
    for (std::size_t k = 0; k < step_.inputs.size(); ++k)
      text += fmt::format("{}, {}, ", around.places[k], run.strides[k]);
    if (const auto* scalars = step_.params.get_if<ScalarParams>())
      text += fmt::format("(REAL){}, (REAL){}, ", literal(scalars->a), literal(scalars->b));
    return {text + fmt::format("{}, {}, {});", around.places.back(), run.strides.back(), run.extent), ""};
  }

  const Program& program_;
  const Step& step_;
  const BufferExpression& place_;
  Functions& functions_;
};

}  // namespace

Statement statement(const Program& program, const Step& step, const BufferExpression& place, Functions& functions) {
  return StepText(program, step, place, functions).write();
}

}  // namespace graphrun::c99
