// graph_builder.h: defines a model as a graph in C++: inputs, parameters, and values computed from them.
// Contract: every call infers the type of the new value and throws Error, with the name of the node, if operands do not
// match. Nothing is computed. A builder belongs to one thread at a time. A value belongs to the builder that created
// it. Not here: data, training and execution (model.h, session.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/tensor.h"
#include "graphrun/types.h"
#include "graphrun/variant.h"

namespace graphrun {

struct Value {
  std::uint32_t id = ~std::uint32_t{0};
  std::uint32_t owner = 0;  // id of the builder; 0: none, rejected by every call
  bool valid() const { return id != ~std::uint32_t{0}; }
  friend bool operator==(Value, Value) = default;
};

// Initial values of a parameter. Random numbers come from a stream keyed by (seed, name of the parameter).
// The kinds from glorot_uniform to lecun_normal have mean 0 and variance 2 / (fan_in + fan_out) (Glorot and Bengio
// 2010), 2 / fan_in (He et al. 2015) or 1 / fan_in (LeCun et al. 1998). fan_in and fan_out are the last two extents
// times `a`: the number of elements in a window of a convolution, 1 elsewhere.
// nguyen_widrow suits a layer of n tanh units with one input in [-1, 1] (Nguyen and Widrow 1990): the slopes of the
// units are equal and their centres spread over the interval. Weights (1, n) are 0.7 n. Biases (n) rise from -0.7 n to
// 0.7 n in equal steps; that of a single unit is 0.
struct Init {
  // clang-format off
  enum class Kind { constant, normal, uniform, glorot_uniform, glorot_normal, he_uniform, he_normal, lecun_uniform,
                    lecun_normal, nguyen_widrow, values };
  // clang-format on
  Kind kind = Kind::constant;
  double a = 0;       // constant: the value; normal: the mean; uniform: the lower end; by fan: see above
  double b = 0;       // normal: the standard deviation; uniform: the upper end
  HostTensor tensor;  // values

  static Init zeros() { return {}; }
  static Init constant(double value) { return {Kind::constant, value, 0, {}}; }
  static Init normal(double std_dev, double mean = 0) { return {Kind::normal, mean, std_dev, {}}; }
  static Init uniform(double from, double to) { return {Kind::uniform, from, to, {}}; }
  static Init by_fan(Kind kind) { return {kind, 1, 0, {}}; }
  static Init glorot_uniform() { return by_fan(Kind::glorot_uniform); }
  static Init values(HostTensor tensor) { return {Kind::values, 0, 0, std::move(tensor)}; }
};

using AttrValue = Variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;
using AttrList = std::vector<std::pair<std::string, AttrValue>>;

class GRAPHRUN_API GraphBuilder {
 public:
  // `batch`: number of samples of a full batch, which replaces kBatch (types.h) when the model is compiled.
  explicit GraphBuilder(std::int64_t batch);
  ~GraphBuilder();
  GraphBuilder(GraphBuilder&&) noexcept;
  GraphBuilder& operator=(GraphBuilder&&) noexcept;

  std::int64_t batch() const;  // 0: the model file says "all" and the row count is unknown

  // The first extent may be kBatch.
  Value input(std::string_view name, std::initializer_list<std::int64_t> shape, DType dtype = DType::f32);
  Value input(std::string_view name, std::span<const std::int64_t> shape, DType dtype = DType::f32);
  // `decay`: whether weight_decay and l2 apply to it.
  Value parameter(std::string_view name, Shape shape, Init init = Init::zeros(), bool decay = true);
  // Whether optimizers update a parameter (default: true).
  void trainable(Value parameter, bool yes);
  // A state that only assign() updates, once in each training step. Weights files contain it. `after`: the value is
  // computed from the updated parameters, for averages of weights; otherwise from those before the update, which the
  // loss uses.
  Value state(std::string_view name, Shape shape, Init init = Init::zeros());
  void assign(Value state, Value value, bool after = false);
  Value constant(double value);
  // A runtime hyperparameter: an f32 state, initially `value`, that Session::write() may change between steps.
  Value runtime_scalar(std::string_view name, double value);
  Value constant(std::span<const double> values, Shape shape);

  // Any function of ops.md by name, such as "tanh", "matmul" or "mean".
  Value op(std::string_view op, std::initializer_list<Value> inputs, const AttrList& attributes = {});
  Value op(std::string_view op, std::span<const Value> inputs, const AttrList& attributes = {});
  // An expression (model-format.md) over the names defined so far: "tanh(x @ W1 + b1)". "h = tanh(x)" also names the
  // value.
  Value expression(std::string_view text);
  // A layer (ops.md, "Layers"). Its parameters are named after it. Additional attributes: "share" (a
  // layer of the same kind whose parameters and attributes it uses), "trainable", and false to omit an optional
  // parameter ("bias").
  Value layer(std::string_view layer, std::string_view name, std::initializer_list<Value> inputs,
              const AttrList& attributes = {});
  // x @ name.W + name.b: W (in, units) glorot_uniform, b (units) zeros.
  Value dense(std::string_view name, Value x, std::int64_t units, std::string_view activation = {});
  // Gradient of the float scalar `of` with respect to `by`. The result is a value and can be differentiated again.
  Value gradient(Value of, Value by);

  void name(Value value, std::string_view name);  // each name is used only once
  Value find(std::string_view name) const;        // throws Error with the nearest name
  const TensorType& type(Value value) const;
  std::string print() const;  // the canonical text, one line per node

  class Impl;
  Impl& impl();  // for the library only; throws Error for a moved-from builder
  const Impl& impl() const;

 private:
  friend class ModelBuild;
  GraphBuilder();  // for a model file, whose batch may be known later

  std::unique_ptr<Impl> impl_;
};

// Elementwise operators, with broadcasting as in NumPy. A number is converted to the dtype of the other operand. The
// result belongs to the builder of the operands. Throws Error for values of different or destroyed builders.
GRAPHRUN_API Value operator+(Value a, Value b);
GRAPHRUN_API Value operator-(Value a, Value b);
GRAPHRUN_API Value operator*(Value a, Value b);
GRAPHRUN_API Value operator/(Value a, Value b);
GRAPHRUN_API Value operator+(Value a, double b);
GRAPHRUN_API Value operator-(Value a, double b);
GRAPHRUN_API Value operator*(Value a, double b);
GRAPHRUN_API Value operator/(Value a, double b);
GRAPHRUN_API Value operator+(double a, Value b);
GRAPHRUN_API Value operator-(double a, Value b);
GRAPHRUN_API Value operator*(double a, Value b);
GRAPHRUN_API Value operator/(double a, Value b);
GRAPHRUN_API Value operator-(Value a);

}  // namespace graphrun
