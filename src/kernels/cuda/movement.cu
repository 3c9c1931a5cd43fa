// movement.cu: copies and conversions: broadcast_to, cast, assign, combine_shards (for one shard: combine_shards.cu has
// the rest).
#include "graphrun/op.h"
#include "kernels/cuda/elementwise.cuh"

namespace graphrun::cuda {
namespace {

void move(const KernelArgs& args, Launcher& launcher, const char* name, int input) {
  with_element(size_of(args.out_type.dtype),
               [&]<class Word>(Word) { launch_elementwise<Same, Word, Word>(args, launcher, name, {}, input); });
}

void launch_broadcast(const KernelArgs& args, Launcher& launcher) {
  move(args, launcher, "broadcast_to", 0);
}

void launch_assign(const KernelArgs& args, Launcher& launcher) {
  if (args.in[1] != args.out) move(args, launcher, "assign", 1);  // the value may have been computed in place
}

void launch_combine_shards(const KernelArgs& args, Launcher& launcher) {
  if (args.in[0] != args.out) move(args, launcher, "combine_shards", 0);
}

// Destination type of casts to boolean; distinct from the byte type that casts from boolean read.
struct Bool {
  std::uint8_t value;
};

template <class From, class To>
struct Cast {
  __device__ To operator()(From value) const {
    if constexpr (std::is_same_v<To, Bool>) return {static_cast<std::uint8_t>(value != From(0) ? 1 : 0)};
    if constexpr (std::is_same_v<To, float>) return static_cast<float>(value);
    if constexpr (std::is_same_v<To, std::int32_t>) return to_i32(value);
    if constexpr (std::is_same_v<To, std::uint64_t>) return to_u64(value);
  }
};

void launch_cast(const KernelArgs& args, Launcher& launcher) {
  if (args.in_type[0].dtype == args.out_type.dtype) return move(args, launcher, "cast", 0);
  with_type(args.in_type[0].dtype, [&]<class From>(From) {
    with_type(args.out_type.dtype, [&]<class Number>(Number) {
      using To = std::conditional_t<std::is_same_v<Number, std::uint8_t>, Bool, Number>;
      launch_elementwise<Cast<From, To>, To, From>(args, launcher, "cast", {});
    });
  });
}

}  // namespace

LaunchFn find_movement(Op op) {
  if (op == Op::broadcast_to) return launch_broadcast;
  if (op == Op::assign) return launch_assign;
  if (op == Op::combine_shards) return launch_combine_shards;
  if (op == Op::cast) return launch_cast;
  return nullptr;
}

}  // namespace graphrun::cuda
