// movement.cu: the same elements elsewhere or as another type: broadcast_to, cast, assign.
#include "graphrun/op.h"
#include "kernels/cuda/elementwise.cuh"

namespace graphrun::cuda {
namespace {

struct Same {
  template <class T>
  __device__ T operator()(T value) const {
    return value;
  }
};

// Elements are moved as words of their size: no kernel for each dtype.
void move(const KernelArgs& args, Launcher& launcher, const char* name, int input) {
  switch (size_of(args.out_type.dtype)) {
    case 1:
      return launch_elementwise<Same, std::uint8_t, std::uint8_t>(args, launcher, name, {}, input);
    case 4:
      return launch_elementwise<Same, std::uint32_t, std::uint32_t>(args, launcher, name, {}, input);
    default:
      return launch_elementwise<Same, std::uint64_t, std::uint64_t>(args, launcher, name, {}, input);
  }
}

void launch_broadcast(const KernelArgs& args, Launcher& launcher) {
  move(args, launcher, "broadcast_to", 0);
}

void launch_assign(const KernelArgs& args, Launcher& launcher) {
  if (args.in[1] != args.out) move(args, launcher, "assign", 1);  // the value may have been computed in place
}

struct Bool {
  std::uint8_t value;
};

// To the nearest number that the type holds; NaN becomes 0 in an integer. Conversions from float saturate by
// themselves.
template <class From, class To>
struct Cast {
  __device__ To operator()(From value) const {
    if constexpr (std::is_same_v<To, Bool>) {
      return {static_cast<std::uint8_t>(value != From(0) ? 1 : 0)};
    } else if constexpr (std::is_same_v<From, float> && !std::is_same_v<To, float>) {
      return value == value ? static_cast<To>(value) : To(0);
    } else if constexpr (std::is_same_v<From, std::int32_t> && std::is_same_v<To, std::uint64_t>) {
      return value > 0 ? static_cast<To>(value) : To(0);
    } else if constexpr (std::is_same_v<From, std::uint64_t> && std::is_same_v<To, std::int32_t>) {
      return value < 0x7fffffffu ? static_cast<To>(value) : To(0x7fffffff);
    } else {
      return static_cast<To>(value);
    }
  }
};

template <class From>
void cast_from(const KernelArgs& args, Launcher& launcher) {
  switch (args.out_type.dtype) {
    case DType::f32:
      return launch_elementwise<Cast<From, float>, float, From>(args, launcher, "cast", {});
    case DType::i32:
      return launch_elementwise<Cast<From, std::int32_t>, std::int32_t, From>(args, launcher, "cast", {});
    case DType::u64:
      return launch_elementwise<Cast<From, std::uint64_t>, std::uint64_t, From>(args, launcher, "cast", {});
    default:
      return launch_elementwise<Cast<From, Bool>, Bool, From>(args, launcher, "cast", {});
  }
}

void launch_cast(const KernelArgs& args, Launcher& launcher) {
  if (args.in_type[0].dtype == args.out_type.dtype) return move(args, launcher, "cast", 0);
  switch (args.in_type[0].dtype) {
    case DType::f32:
      return cast_from<float>(args, launcher);
    case DType::i32:
      return cast_from<std::int32_t>(args, launcher);
    case DType::u64:
      return cast_from<std::uint64_t>(args, launcher);
    default:
      return cast_from<std::uint8_t>(args, launcher);
  }
}

}  // namespace

LaunchFn find_movement(Op op) {
  if (op == Op::broadcast_to) return launch_broadcast;
  if (op == Op::assign) return launch_assign;
  if (op == Op::cast) return launch_cast;
  return nullptr;
}

}  // namespace graphrun::cuda
