// elementwise.cu: one kernel for each row of the tables of scalar_ops.h, and where().
#include "kernels/cuda/elementwise.cuh"

#include "graphrun/op.h"
#include "graphrun/params/scalar.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cuda {
namespace {

template <class F>
struct Unary {
  float a, b;  // the op's attributes
  __device__ float operator()(float x) const { return F::apply(x, a, b); }
};
template <class F>
struct Binary {
  __device__ float operator()(float x, float y) const { return F::apply(x, y); }
};
template <class F>
struct Compare {
  template <class T>
  __device__ std::uint8_t operator()(T x, T y) const {
    return F::apply(x, y) ? 1 : 0;
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
  launch_elementwise<Binary<F>, float, float, float>(args, launcher, "binary", {});
}

template <class F>
void launch_compare(const KernelArgs& args, Launcher& launcher) {
  using Out = std::uint8_t;
  switch (args.in_type[0].dtype) {
    case DType::f32:
      return launch_elementwise<Compare<F>, Out, float, float>(args, launcher, "compare", {});
    case DType::i32:
      return launch_elementwise<Compare<F>, Out, std::int32_t, std::int32_t>(args, launcher, "compare", {});
    case DType::u64:
      return launch_elementwise<Compare<F>, Out, std::uint64_t, std::uint64_t>(args, launcher, "compare", {});
    default:
      return launch_elementwise<Compare<F>, Out, std::uint8_t, std::uint8_t>(args, launcher, "compare", {});
  }
}

template <class F>
void launch_logical(const KernelArgs& args, Launcher& launcher) {
  using Bool = std::uint8_t;
  if (args.inputs == 1) return launch_elementwise<Logical<F>, Bool, Bool>(args, launcher, "logical", {});
  launch_elementwise<Logical<F>, Bool, Bool, Bool>(args, launcher, "logical", {});
}

template <class Word>
void launch_where_words(const KernelArgs& args, Launcher& launcher) {
  launch_elementwise<Where, Word, std::uint8_t, Word, Word>(args, launcher, "where", {});
}
void launch_where(const KernelArgs& args, Launcher& launcher) {
  switch (size_of(args.out_type.dtype)) {
    case 1:
      return launch_where_words<std::uint8_t>(args, launcher);
    case 4:
      return launch_where_words<std::uint32_t>(args, launcher);
    default:
      return launch_where_words<std::uint64_t>(args, launcher);
  }
}

struct Row {
  Op op;
  LaunchFn launch;
};
#define GRAPHRUN_UNARY_ROW(name, Functor, ...) {Op::name, launch_unary<scalar::Functor>},
#define GRAPHRUN_BINARY_ROW(name, Functor, ...) {Op::name, launch_binary<scalar::Functor>},
#define GRAPHRUN_COMPARE_ROW(name, Functor, ...) {Op::name, launch_compare<scalar::Functor>},
#define GRAPHRUN_LOGICAL_ROW(name, Functor, ...) {Op::name, launch_logical<scalar::Functor>},
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
