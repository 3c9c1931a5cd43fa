// elementwise.cu: one kernel for each row of the tables of scalar_ops.h, and where().
#include "kernels/cuda/elementwise.cuh"

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cuda {

Elementwise elementwise_of(const KernelArgs& args, int first, std::initializer_list<std::uint64_t> packs) {
  Elementwise e;
  e.extent = extent_of(args, args.out_type, static_cast<std::uint64_t>(args.out_type.shape.elements()));
  e.aligned = is_aligned(args.out, *packs.begin());
  Operand* operand = e.operand;
  for (const std::uint64_t* pack = packs.begin() + 1; pack != packs.end(); ++pack, ++operand, ++first) {
    *operand = operand_of(args.stored_view(first), args.out_type.shape, args.in[first]);
    operand->aligned = is_aligned(args.in[first], *pack);
  }
  return e;
}

namespace {

template <class F>
struct Unary {
  float a, b;  // the op's attributes
  __device__ float operator()(float x) const { return F::apply(x, a, b); }
};
template <class F, class Out>
struct Binary {
  template <class T>
  __device__ Out operator()(T x, T y) const {
    return static_cast<Out>(F::apply(x, y));
  }
};
template <class F>
struct Logical {
  __device__ std::uint8_t operator()(std::uint8_t x, std::uint8_t y = 0) const {
    return F::apply(x != 0, y != 0) ? 1 : 0;
  }
};
struct Where {
  template <class T>
  __device__ T operator()(std::uint8_t condition, T x, T y) const {
    return condition != 0 ? x : y;
  }
};

template <class F>
void launch_unary(const KernelArgs& args, Launcher& launcher) {
  Unary<F> f{0.0f, 0.0f};
  if (const auto* params = args.params.get_if<ScalarParams>()) {
    f = {static_cast<float>(params->a), static_cast<float>(params->b)};
  }
  launch_elementwise<Unary<F>, float, float>(args, launcher, "unary", f);
}

template <class F>
void launch_binary(const KernelArgs& args, Launcher& launcher) {
  launch_elementwise<Binary<F, float>, float, float, float>(args, launcher, "binary", {});
}

template <class F>
void launch_compare(const KernelArgs& args, Launcher& launcher) {
  with_type(args.in_type[0].dtype, [&]<class T>(T) {
    launch_elementwise<Binary<F, std::uint8_t>, std::uint8_t, T, T>(args, launcher, "compare", {});
  });
}

template <class F>
void launch_logical(const KernelArgs& args, Launcher& launcher) {
  using Bool = std::uint8_t;
  if (args.inputs == 1) return launch_elementwise<Logical<F>, Bool, Bool>(args, launcher, "logical", {});
  launch_elementwise<Logical<F>, Bool, Bool, Bool>(args, launcher, "logical", {});
}

void launch_where(const KernelArgs& args, Launcher& launcher) {
  with_element(size_of(args.out_type.dtype), [&]<class Word>(Word) {
    launch_elementwise<Where, Word, std::uint8_t, Word, Word>(args, launcher, "where", {});
  });
}

struct Row {
  Op op;
  LaunchFn launch;
};
#define GRAPHRUN_UNARY_ROW(name, Functor, ...) {scalar_op::name, launch_unary<scalar::Functor>},
#define GRAPHRUN_BINARY_ROW(name, Functor, ...) {scalar_op::name, launch_binary<scalar::Functor>},
#define GRAPHRUN_COMPARE_ROW(name, Functor, ...) {scalar_op::name, launch_compare<scalar::Functor>},
#define GRAPHRUN_LOGICAL_ROW(name, Functor, ...) {scalar_op::name, launch_logical<scalar::Functor>},
const Row kRows[] = {
    // clang-format off
    GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY_ROW)
    GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_ROW)
    GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_ROW)
    GRAPHRUN_LOGICAL_OPS(GRAPHRUN_LOGICAL_ROW)
    {Op::where, launch_where},
    // clang-format on
};

}  // namespace

LaunchFn find_elementwise(Op op) {
  for (const Row& row : kRows) {
    if (row.op == op) return row.launch;
  }
  return nullptr;
}

}  // namespace graphrun::cuda
