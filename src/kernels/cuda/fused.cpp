#include "kernels/cuda/fused.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <utility>

#include "graphrun/op.h"
#include "graphrun/params/minibatch.h"
#include "graphrun/params/scalar.h"
#include "kernels/cuda/layout.h"

namespace graphrun::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint64_t kPacked = 1u << 16;  // elements from which a thread takes four: before, more threads are faster

enum class Form : std::uint8_t { unary, binary, compare, logical, other };
struct Row {
  Op op;
  std::string_view functor;
  Form form;
};
#define GRAPHRUN_UNARY_ROW(name, Functor, ...) {Op::name, #Functor, Form::unary},
#define GRAPHRUN_BINARY_ROW(name, Functor, ...) {Op::name, #Functor, Form::binary},
#define GRAPHRUN_COMPARE_ROW(name, Functor, ...) {Op::name, #Functor, Form::compare},
#define GRAPHRUN_LOGICAL_ROW(name, Functor, ...) {Op::name, #Functor, Form::logical},
constexpr Row kRows[] = {
    // clang-format off
    GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY_ROW)
    GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_ROW)
    GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_ROW)
    GRAPHRUN_LOGICAL_OPS(GRAPHRUN_LOGICAL_ROW)
    {Op::where, "", Form::other}, {Op::cast, "", Form::other}, {Op::broadcast_to, "", Form::other},
    {Op::assign, "", Form::other}, {Op::increment, "", Form::other}, {Op::record, "", Form::other},
    {Op::row_count, "", Form::other},
    // clang-format on
};

const Row* row_of(Op op) {
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return row.op == op; });
  return found == std::end(kRows) ? nullptr : found;
}

constexpr std::string_view kPrelude = R"(#include "kernels/scalar_ops.h"
using namespace graphrun;
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
template <class T> struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) Pack { T v[4]; };
template <class T> __device__ __forceinline__ void load4(const T* from, T (&to)[4]) {
  const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from);
  for (int k = 0; k < 4; ++k) to[k] = pack.v[k];
}
template <class T> __device__ __forceinline__ void store4(T* to, const T (&from)[4]) {
  Pack<T> pack;
  for (int k = 0; k < 4; ++k) pack.v[k] = from[k];
  *reinterpret_cast<Pack<T>*>(to) = pack;
}
// As movement.cu casts. A boolean is told by the caller: it has the type of a byte.
__device__ __forceinline__ int to_i32(float x) { return x == x ? static_cast<int>(x) : 0; }
__device__ __forceinline__ int to_i32(u64 x) { return x < 0x7fffffffu ? static_cast<int>(x) : 0x7fffffff; }
__device__ __forceinline__ int to_i32(int x) { return x; }
__device__ __forceinline__ int to_i32(u8 x) { return x; }
__device__ __forceinline__ u64 to_u64(float x) { return x == x ? static_cast<u64>(x) : 0; }
__device__ __forceinline__ u64 to_u64(int x) { return x > 0 ? static_cast<u64>(x) : 0; }
__device__ __forceinline__ u64 to_u64(u64 x) { return x; }
__device__ __forceinline__ u64 to_u64(u8 x) { return x; }
__device__ __forceinline__ int batch_rows(u64 step, u64 total, u64 capacity, u64 batches) {
  const u64 left = total - step % batches * capacity;
  return static_cast<int>(left < capacity ? left : capacity);
}
)";

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::i32:
      return "int";
    case DType::u64:
      return "u64";
    case DType::boolean:
      return "u8";
    case DType::f64:
      break;
  }
  return "double";
}

std::string number(double value) {
  return fmt::format("__int_as_float({:#x})", std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}

std::string cast(std::string_view x, DType from, DType to) {
  if (from == to) return std::string(x);
  switch (to) {
    case DType::f32:
      return fmt::format("static_cast<float>({})", x);
    case DType::i32:
      return fmt::format("to_i32({})", x);
    case DType::u64:
      return fmt::format("to_u64({})", x);
    default:
      return fmt::format("static_cast<u8>({} != 0 ? 1 : 0)", x);
  }
}

// Of operands that are expressions.
std::string expression(const FusedStep& step, const std::vector<std::string>& x) {
  const Row& row = *row_of(step.op);
  const auto* scalars = step.params.get_if<ScalarParams>();
  switch (row.form) {
    case Form::unary:
      return fmt::format("scalar::{}::apply({}, {}, {})", row.functor, x[0],
                         number(scalars != nullptr ? scalars->a : 0), number(scalars != nullptr ? scalars->b : 0));
    case Form::binary:
      return fmt::format("scalar::{}::apply({}, {})", row.functor, x[0], x[1]);
    case Form::compare:
      return fmt::format("static_cast<u8>(scalar::{}::apply({}, {}) ? 1 : 0)", row.functor, x[0], x[1]);
    case Form::logical:
      return fmt::format("static_cast<u8>(scalar::{}::apply({} != 0, {}) ? 1 : 0)", row.functor, x[0],
                         x.size() > 1 ? x[1] + " != 0" : "false");
    case Form::other:
      break;
  }
  if (step.op == Op::where) return fmt::format("{} != 0 ? {} : {}", x[0], x[1], x[2]);
  if (step.op == Op::cast) return cast(x[0], step.in[0].type.dtype, step.out.type.dtype);
  if (step.op == Op::assign || step.op == Op::record) return x[1];
  if (step.op == Op::increment) return x[0] + " + 1";
  if (step.op == Op::row_count) {
    const auto& batches = step.params.as<MinibatchParams>();
    return fmt::format("batch_rows({}, {}u, {}u, {}u)", x[0], batches.total, batches.capacity,
                       std::max<std::int64_t>(batches.batches(), 1));
  }
  return x[0];  // broadcast_to
}

// The text of one chain: loads, then values, then stores, so that a value may take the place of an operand.
class Chain {
 public:
  Chain(const FusedChain& chain, const Machine& machine) : chain_(chain), width_(chain.elements >= kPacked ? 4 : 1) {
    const std::uint64_t groups = (chain.elements + width_ - 1) / width_;
    blocks_ = linear_grid(machine, groups, kThreads).x;
    const bool small = chain.elements + 4ull * blocks_ * kThreads < (1ull << 32);
    index_ = small ? "u32" : "u64";
  }

  std::uint32_t blocks() const { return blocks_; }

  std::string text(std::string_view name) {
    for (std::size_t s = 0; s < chain_.steps.size(); ++s) add(static_cast<int>(s), chain_.steps[s]);
    std::string out =
        fmt::format("static __device__ __forceinline__ void {}(const Pointers& p, {} block) {{\n", name, index_);
    out += outer_;
    const std::uint64_t groups = (chain_.elements + width_ - 1) / width_;
    out += fmt::format("  for ({0} group = block * {1} + threadIdx.x; group < {2}u; group += {3}u) {{\n", index_,
                       kThreads, groups, std::uint64_t{blocks_} * kThreads);
    out += fmt::format("    const {} base = group * {};\n", index_, width_);
    if (ragged())
      out +=
          fmt::format("    const int inside = {0}u - base < 4 ? static_cast<int>({0}u - base) : 4;\n", chain_.elements);
    out += loads_;
    if (width_ == 4) out += "    _Pragma(\"unroll\")\n";
    out += fmt::format("    for (int k = 0; k < {}; ++k) {{\n", width_);
    out += fmt::format("      const {} i = base + k;\n", index_);
    if (ragged()) out += "      if (k >= inside) break;\n";
    out += body_ + "    }\n" + stores_ + "  }\n}\n";
    return out;
  }

 private:
  bool ragged() const { return width_ == 4 && chain_.elements % 4 != 0; }
  std::string guarded(std::string_view packed, std::string_view single) const {
    if (!ragged()) return fmt::format("    {}\n", packed);
    return fmt::format(
        "    if (inside == 4) {{ {} }} else {{ for (int k = 0; k < 4; ++k) if (k < inside) {{ {} }} }}\n", packed,
        single);
  }

  // An operand as an expression of i and k.
  std::string operand(int step, std::size_t number, const FusedOperand& in, const Shape& out) {
    if (in.value >= 0) return fmt::format("v{}", in.value);
    const std::string_view type = type_name(in.type.dtype);
    const std::string from = fmt::format("static_cast<const {}*>(p.at[{}])", type, in.pointer);
    const std::string name = fmt::format("x{}_{}", step, number);
    const Operand how = operand_of(in.type.shape, out, nullptr);
    const auto pack = [&](std::string_view at) {
      loads_ += fmt::format("    {} {}[4];\n", type, name);
      loads_ += guarded(fmt::format("load4({} + {}, {});", from, at, name),
                        fmt::format("{}[k] = {}[{} + k];", name, from, at));
      return name + "[k]";
    };
    switch (how.access) {
      case Access::same:
        if (width_ == 4 && in.aligned) return pack("base");
        return from + "[i]";
      case Access::scalar:
        outer_ += fmt::format("  const {} {} = {}[0];\n", type, name, from);
        return name;
      case Access::period:
        if (width_ == 4 && in.aligned && how.extent % 4 == 0) return pack(fmt::format("base % {}u", how.extent));
        return fmt::format("{}[i % {}u]", from, how.extent);
      case Access::repeat:
        return fmt::format("{}[i / {}u]", from, how.extent);
      case Access::strided:
        break;
    }
    std::string at;
    std::int64_t inner = 1;
    for (int d = how.dims.rank - 1; d >= 0; --d) {
      const Dim<1>& dim = how.dims.dim[d];
      if (dim.stride[0] != 0)
        at += fmt::format("{}i / {}u % {}u * {}u", at.empty() ? "" : " + ", inner, dim.extent, dim.stride[0]);
      inner *= dim.extent;
    }
    return fmt::format("{}[{}]", from, at.empty() ? "0" : at);
  }

  // Before the loop.
  void add_scalar(int number, const FusedStep& step) {
    std::vector<std::string> x;
    for (const FusedOperand& in : step.in) {
      x.push_back(in.value >= 0
                      ? fmt::format("v{}", in.value)
                      : fmt::format("static_cast<const {}*>(p.at[{}])[0]", type_name(in.type.dtype), in.pointer));
    }
    outer_ += fmt::format("  const {} v{} = {};\n", type_name(step.out.type.dtype), number, expression(step, x));
  }

  void add(int number, const FusedStep& step) {
    if (step.scalar) return add_scalar(number, step);
    const std::string_view type = type_name(step.out.type.dtype);
    const bool record = step.op == Op::record;
    const Shape& shape = record ? step.in[1].type.shape : step.out.type.shape;
    std::vector<std::string> x;
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      // What is only written is not loaded.
      const bool unused = i == 0 && (step.op == Op::assign || record);
      x.push_back(unused ? std::string() : operand(number, i, step.in[i], shape));
    }
    std::string value = expression(step, x);
    const Shape& out = step.out.type.shape;
    if (step.out.type.rows > 0 && step.row_count >= 0 && out[0] > 0) {
      const std::uint64_t per_sample =
          static_cast<std::uint64_t>(step.out.type.rows) * (chain_.elements / static_cast<std::uint64_t>(out[0]));
      const std::string rows = fmt::format("rows{}_{}", step.row_count, per_sample);
      if (limits_.emplace(step.row_count, per_sample).second) {
        outer_ += fmt::format("  const u64 {} = static_cast<u64>(*static_cast<const int*>(p.at[{}])) * {}u;\n", rows,
                              step.row_count, per_sample);
      }
      value = fmt::format("i < {} ? {} : {}(0)", rows, value, type);
    }
    body_ += fmt::format("      const {} v{} = {};\n", type, number, value);
    if (step.out.pointer < 0) return;
    const std::string to = fmt::format("static_cast<{}*>(p.at[{}])", type, step.out.pointer);
    if (record) {
      body_ += fmt::format("      {}[{} % {}u] = v{};\n", to, x[2], out[0], number);
    } else if (width_ == 4 && step.out.aligned) {
      loads_ += fmt::format("    {} y{}[4];\n", type, number);
      body_ += fmt::format("      y{0}[k] = v{0};\n", number);
      stores_ += guarded(fmt::format("store4({} + base, y{});", to, number),
                         fmt::format("{}[base + k] = y{}[k];", to, number));
    } else {
      loads_ += fmt::format("    {} y{}[{}];\n", type, number, width_);
      body_ += fmt::format("      y{0}[k] = v{0};\n", number);
      stores_ += fmt::format("    for (int k = 0; k < {}; ++k) {{ if (base + k < {}u) {}[base + k] = y{}[k]; }}\n",
                             width_, chain_.elements, to, number);
    }
  }

  const FusedChain& chain_;
  std::uint64_t width_;
  std::uint32_t blocks_ = 1;
  std::string_view index_;
  std::string outer_, loads_, body_, stores_;
  std::set<std::pair<int, std::uint64_t>> limits_;  // declared: of a row count and the elements of a sample
};

}  // namespace

bool can_fuse(Op op) {
  return row_of(op) != nullptr;
}

std::string fused_prelude() {
  return std::string(kPrelude);
}

FusedKernel fuse(std::string_view name, std::span<const FusedChain> chains, std::size_t pointers,
                 const Machine& machine) {
  FusedKernel kernel;
  kernel.threads = kThreads;
  std::string functions, choice;
  std::uint32_t blocks = 0;
  kernel.source =
      fmt::format("namespace {} {{\nstruct Pointers {{ void* at[{}]; }};\n", name, std::max<std::size_t>(pointers, 1));
  for (std::size_t c = 0; c < chains.size(); ++c) {
    Chain chain(chains[c], machine);
    const std::string part = fmt::format("chain{}", c);
    kernel.source += chain.text(part);
    choice += fmt::format("  {}if (blockIdx.x < {}u) {}(p, blockIdx.x - {}u);\n", c > 0 ? "else " : "",
                          blocks + chain.blocks(), part, blocks);
    blocks += chain.blocks();
  }
  kernel.source += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ Pointers p) {{\n{}}}\n}}\n",
      kThreads, name, choice);
  kernel.grid = {blocks, 1, 1};
  return kernel;
}

}  // namespace graphrun::cuda
