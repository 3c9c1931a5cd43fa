// tile_elementwise.cpp: scalar ops on tiles, by the loops of isa.h: in a tile an elementwise op is one long loop.
#include <algorithm>

#include "graphrun/op.h"
#include "graphrun/params/scalar.h"
#include "kernels/cpu/batch/elements.h"
#include "kernels/cpu/simd/scalar_loops.h"
#include "kernels/cpu/tiles/tile_steps.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

// How an operand's features run along those of the output.
struct Run {
  TileOperand operand;
  Dims<1> dims;  // of the output's features: features (elements, without rows) of the operand

  Run(const TileOperand& of, const Shape& out) : operand(of), dims(merged<1>({broadcast(features(of), out)})) {}
  bool mapped() const { return dims.rank > 1; }
  i64 step() const { return dims.rank == 1 ? dims.dim[0].stride[0] : 0; }  // 0 or 1
  // As one row of all features: the output's elements in order, or one number for all.
  bool is_flat() const { return !mapped() && (in_tile(operand) ? step() == 1 || dims.count == 1 : step() == 0); }

  // All features as the rows of a slab, or the one that belongs to feature f.
  template <class T>
  Strided<T> all(const TileContext& c) const {
    const i64 column = in_tile(operand) ? 1 : 0;
    return {read<T>(operand, c), step() * (in_tile(operand) ? c.stride : 1), column};
  }
  template <class T>
  Strided<T> one(const TileContext& c, i64 f) const {
    const bool tile = in_tile(operand);
    return {read<T>(operand, c) + dims.offset(f) * (tile ? c.stride : 1), 0, tile ? 1 : 0};
  }
};

// Calls f(output, inputs ..., rows, columns) for slabs that cover the output.
class Elementwise : public TileStep {
 public:
  explicit Elementwise(const TileCall& call) : out_(call.output), features_(feature_count(call.output.type)) {
    const Shape out = features_of(call.output.type);
    for (const TileOperand& input : call.inputs) runs_.emplace_back(input, out);
    flat_ = std::all_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.is_flat(); });
    mapped_ = std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.mapped(); });
  }

 protected:
  template <class Out, class F>
  void for_slabs(const TileContext& c, F&& f) const {
    Out* out = written<Out>(out_, c);
    if (flat_) return f(out, i64{1}, features_ * c.stride, Whole{*this, c});
    if (!mapped_) return f(out, features_, c.stride, Whole{*this, c});
    for (i64 i = 0; i < features_; ++i, out += c.stride) f(out, i64{1}, c.stride, Feature{*this, c, i});
  }
  struct Whole {
    const Elementwise& step;
    const TileContext& c;
    template <class T>
    Strided<T> get(std::size_t i) const {
      return step.runs_[i].all<T>(c);
    }
  };
  struct Feature {
    const Elementwise& step;
    const TileContext& c;
    i64 f;
    template <class T>
    Strided<T> get(std::size_t i) const {
      return step.runs_[i].one<T>(c, f);
    }
  };

  TileOperand out_;
  i64 features_;
  std::vector<Run> runs_;
  bool flat_ = false, mapped_ = false;
};

class Unary final : public Elementwise {
 public:
  Unary(const TileCall& call, UnaryFn loop) : Elementwise(call), loop_(loop) {
    if (const auto* scalars = call.params->get_if<ScalarParams>()) {
      a_ = static_cast<float>(scalars->a);
      b_ = static_cast<float>(scalars->b);
    }
  }
  void run(const TileContext& c) const override {
    loop_(written<float>(out_, c), read<float>(runs_[0].operand, c), features_ * c.stride, a_, b_);
  }

 private:
  UnaryFn loop_;
  float a_ = 0, b_ = 0;
};

template <class Out>
class Binary final : public Elementwise {
 public:
  Binary(const TileCall& call, BinaryFn<Out> loop) : Elementwise(call), loop_(loop) {}
  void run(const TileContext& c) const override {
    for_slabs<Out>(c, [&](Out* out, i64 rows, i64 columns, const auto& inputs) {
      loop_(out, rows, columns, inputs.template get<float>(0), inputs.template get<float>(1));
    });
  }

 private:
  BinaryFn<Out> loop_;
};

class Where final : public Elementwise {
 public:
  Where(const TileCall& call, const IsaTable& table) : Elementwise(call), table_(table) {}
  void run(const TileContext& c) const override {
    for_slabs<float>(c, [&](float* out, i64 rows, i64 columns, const auto& inputs) {
      table_.where(out, rows, columns, inputs.template get<std::uint8_t>(0), inputs.template get<float>(1),
                   inputs.template get<float>(2));
    });
  }

 private:
  const IsaTable& table_;
};

// Booleans and integers: one plain loop for every instruction set. `f` takes the elements of T.
template <class Out, class T, int kInputs, class F>
class Plain final : public Elementwise {
 public:
  Plain(const TileCall& call, F f) : Elementwise(call), f_(f) {}
  void run(const TileContext& c) const override {
    for_slabs<Out>(c, [&](Out* out, i64 rows, i64 columns, const auto& inputs) {
      const Strided<T> x = inputs.template get<T>(0);
      const Strided<T> y = inputs.template get<T>(kInputs - 1);
      for (i64 r = 0; r < rows; ++r)
        for (i64 k = 0; k < columns; ++k)
          *out++ = static_cast<Out>(f_(x.data[r * x.row + k * x.column], y.data[r * y.row + k * y.column]));
    });
  }

 private:
  F f_;
};
template <class Out, class T, int kInputs, class F>
std::unique_ptr<TileStep> plain_step(const TileCall& call, F f) {
  return std::make_unique<Plain<Out, T, kInputs, F>>(call, f);
}

template <class T>
class PlainWhere final : public Elementwise {
 public:
  using Elementwise::Elementwise;
  void run(const TileContext& c) const override {
    for_slabs<T>(c, [&](T* out, i64 rows, i64 columns, const auto& inputs) {
      const Strided<std::uint8_t> m = inputs.template get<std::uint8_t>(0);
      const Strided<T> x = inputs.template get<T>(1);
      const Strided<T> y = inputs.template get<T>(2);
      for (i64 r = 0; r < rows; ++r)
        for (i64 k = 0; k < columns; ++k)
          *out++ = m.data[r * m.row + k * m.column] != 0 ? x.data[r * x.row + k * x.column]
                                                         : y.data[r * y.row + k * y.column];
    });
  }
};

template <DType to, class Out>
std::unique_ptr<TileStep> cast_to(const TileCall& call) {
  const auto one = [](auto x, auto) { return convert<to, Out>(x); };
  switch (call.inputs[0].type.dtype) {
    case DType::f32:
      return plain_step<Out, float, 1>(call, one);
    case DType::i32:
      return plain_step<Out, std::int32_t, 1>(call, one);
    case DType::boolean:
      return plain_step<Out, std::uint8_t, 1>(call, one);
    default:
      return nullptr;
  }
}
std::unique_ptr<TileStep> cast(const TileCall& call) {
  switch (call.output.type.dtype) {
    case DType::f32:
      return cast_to<DType::f32, float>(call);
    case DType::i32:
      return cast_to<DType::i32, std::int32_t>(call);
    case DType::boolean:
      return cast_to<DType::boolean, std::uint8_t>(call);
    default:
      return nullptr;
  }
}

template <class T>
std::unique_ptr<TileStep> plain_compare(const TileCall& call) {
#define GRAPHRUN_COMPARE(name, Functor, ...) \
  if (call.op == Op::name)                   \
    return plain_step<std::uint8_t, T, 2>(call, [](T x, T y) { return scalar::Functor::apply(x, y); });
  GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE)
#undef GRAPHRUN_COMPARE
  return nullptr;
}

std::unique_ptr<TileStep> make(const TileCall& call, Isa isa) {
  const IsaTable& table = isa_table(isa);
  const DType dtype = call.inputs.empty() ? DType::f64 : call.inputs[0].type.dtype;
  if (call.op == Op::cast) return cast(call);
  if (call.op == Op::where) {
    if (call.output.type.dtype == DType::f32) return std::make_unique<Where>(call, table);
    if (call.output.type.dtype == DType::i32) return std::make_unique<PlainWhere<std::int32_t>>(call);
    return std::make_unique<PlainWhere<std::uint8_t>>(call);
  }
  const auto flag = [](bool (*f)(bool, bool)) {
    return [f](std::uint8_t x, std::uint8_t y) { return f(x != 0, y != 0); };
  };
  if (call.op == Op::logical_and)
    return plain_step<std::uint8_t, std::uint8_t, 2>(call, flag([](bool x, bool y) { return x && y; }));
  if (call.op == Op::logical_or)
    return plain_step<std::uint8_t, std::uint8_t, 2>(call, flag([](bool x, bool y) { return x || y; }));
  if (call.op == Op::logical_not)
    return plain_step<std::uint8_t, std::uint8_t, 1>(call, flag([](bool x, bool) { return !x; }));
  if (const UnaryFn loop = unary_loop(table, call.op); loop != nullptr && dtype == DType::f32)
    return std::make_unique<Unary>(call, loop);
  if (const BinaryFn<float> loop = binary_loop(table, call.op); loop != nullptr && dtype == DType::f32)
    return std::make_unique<Binary<float>>(call, loop);
  if (const BinaryFn<std::uint8_t> loop = compare_loop(table, call.op)) {
    if (dtype == DType::f32) return std::make_unique<Binary<std::uint8_t>>(call, loop);
    if (dtype == DType::i32) return plain_compare<std::int32_t>(call);
    if (dtype == DType::boolean) return plain_compare<std::uint8_t>(call);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<TileStep> make_elementwise_tile(const TileCall& call, Isa isa, std::string&) {
  return in_tile(call.output) ? make(call, isa) : nullptr;
}

}  // namespace graphrun::cpu
