// graph_builder.cpp: the public GraphBuilder, a thin wrapper around its Impl.
#include "graphrun/graph_builder.h"

#include <fmt/format.h>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/ops/make.h"
#include "graphrun/error.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

std::vector<ir::NodeId> nodes(const GraphBuilder::Impl& impl, std::span<const Value> values) {
  std::vector<ir::NodeId> ids;
  for (const Value value : values) ids.push_back(impl.node(value));
  return ids;
}

// Locates the error in the text, as if that were the first line of a file.
Error located(const expression::ExpressionError& error, std::string_view text) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    d.file = "expression";
    d.line = 1;
    d.column = static_cast<int>(error.offset) + 1;
    d.source_line = text;
  }
  return Error(error.kind(), std::move(diagnostics));
}

}  // namespace

GraphBuilder::GraphBuilder() : impl_(std::make_unique<Impl>()) {}
GraphBuilder::GraphBuilder(std::int64_t batch) : GraphBuilder() {
  impl_->set_batch(batch);
}
GraphBuilder::~GraphBuilder() = default;
GraphBuilder::GraphBuilder(GraphBuilder&&) noexcept = default;
GraphBuilder& GraphBuilder::operator=(GraphBuilder&&) noexcept = default;

GraphBuilder::Impl& GraphBuilder::impl() {
  return const_cast<Impl&>(std::as_const(*this).impl());
}

const GraphBuilder::Impl& GraphBuilder::impl() const {
  if (impl_ != nullptr) return *impl_;
  throw Error(ErrorKind::input, "builder.moved", "the graph builder was moved away from",
              "a Model is used once: build or load another for a second Session");
}

std::int64_t GraphBuilder::batch() const {
  return impl().batch;
}

Value GraphBuilder::input(std::string_view name, std::initializer_list<std::int64_t> shape, DType dtype) {
  return input(name, std::span(shape.begin(), shape.size()), dtype);
}

Value GraphBuilder::input(std::string_view name, std::span<const std::int64_t> shape, DType dtype) {
  return impl().value(impl().input(name, shape, dtype));
}

Value GraphBuilder::parameter(std::string_view name, Shape shape, Init init, bool decay) {
  return impl().value(impl().parameter(name, shape, {.init = std::move(init), .decay = decay}));
}

Value GraphBuilder::runtime_scalar(std::string_view name, double value) {
  return impl().value(impl().runtime_scalar(name, value));
}

Value GraphBuilder::constant(double value) {
  return impl().value(impl().builder.scalar(value, DType::f32));
}

Value GraphBuilder::constant(std::span<const double> values, Shape shape) {
  const AttrList attrs = {{"values", std::vector<double>(values.begin(), values.end())}};
  return impl().value(make::source(impl().builder, "constant", {DType::f32, shape, 0}, attrs).id);
}

Value GraphBuilder::op(std::string_view op, std::initializer_list<Value> inputs, const AttrList& attributes) {
  return this->op(op, std::span(inputs.begin(), inputs.size()), attributes);
}

Value GraphBuilder::op(std::string_view op, std::span<const Value> inputs, const AttrList& attributes) {
  return impl().value(call(impl().builder, op, nodes(impl(), inputs), attributes));
}

Value GraphBuilder::expression(std::string_view text) {
  using namespace graphrun::expression;
  try {
    const Expression parsed = parse(text);
    if (!parsed.name.empty()) impl().check_new_name(parsed.name);
    Scope scope{impl()};
    scope.layers = true;
    const Findings findings = check(scope, parsed);
    if (!findings.errors.empty()) throw findings.errors.front();
    const ir::NodeId id = build(impl(), parsed);
    if (!parsed.name.empty()) impl().define(parsed.name, id);
    return impl().value(id);
  } catch (const ExpressionError& error) {
    throw located(error, text);
  }
}

void GraphBuilder::trainable(Value parameter, bool yes) {
  const ir::NodeId id = impl().node(parameter);
  const auto found = impl().parameters.find(id);
  if (found == impl().parameters.end() || found->second.is_state) {
    throw Error(ErrorKind::input, "parameter.trainable",
                fmt::format("{} is not a parameter: only parameters are trained", impl().graph[id].name));
  }
  found->second.trainable = yes;
}

Value GraphBuilder::state(std::string_view name, Shape shape, Init init) {
  return impl().value(impl().state(name, shape, std::move(init)));
}

void GraphBuilder::assign(Value state, Value value, bool after) {
  const ir::NodeId to = impl().node(state);
  impl().assign(to, impl().node(value), after);
}

Value GraphBuilder::layer(std::string_view layer, std::string_view name, std::initializer_list<Value> inputs,
                          const AttrList& attributes) {
  const Layer& row = row_named("layer", layers(), layer);
  const std::vector<ir::NodeId> operands = nodes(impl(), inputs);
  return impl().value(add_layer(impl(), row, name, operands, split_layer_attributes(row, attributes)));
}

Value GraphBuilder::gradient(Value of, Value by) {
  return op("gradient", {of, by});
}

Value GraphBuilder::dense(std::string_view name, Value x, std::int64_t units, std::string_view activation) {
  return layer("dense", name, {x}, {{"units", units}, {"activation", std::string(activation)}});
}

void GraphBuilder::name(Value value, std::string_view name) {
  impl().define(name, impl().node(value));
}

Value GraphBuilder::find(std::string_view name) const {
  const Impl& own = impl();  // throws if moved from, before *impl_
  return own.value(expression::resolve({*impl_}, name));
}

const TensorType& GraphBuilder::type(Value value) const {
  return impl().graph[impl().node(value)].type;
}

std::string GraphBuilder::print() const {
  return ir::to_string(impl().graph);
}

namespace {
Value applied(std::string_view op, std::initializer_list<Value> operands) {
  GraphBuilder::Impl& builder = GraphBuilder::Impl::of(*operands.begin());
  return builder.value(call(builder.builder, op, nodes(builder, operands)));
}
Value number_like(double number, Value of) {
  GraphBuilder::Impl& builder = GraphBuilder::Impl::of(of);
  const DType dtype = builder.graph[builder.node(of)].type.dtype;
  return builder.value(builder.builder.scalar(number, dtype));
}
}  // namespace

#define GRAPHRUN_OPERATOR(sign, op)             \
  Value operator sign(Value a, Value b) {       \
    return applied(op, {a, b});                 \
  }                                             \
  Value operator sign(Value a, double b) {      \
    return applied(op, {a, number_like(b, a)}); \
  }                                             \
  Value operator sign(double a, Value b) {      \
    return applied(op, {number_like(a, b), b}); \
  }
GRAPHRUN_OPERATOR(+, "add")
GRAPHRUN_OPERATOR(-, "sub")
GRAPHRUN_OPERATOR(*, "mul")
GRAPHRUN_OPERATOR(/, "div")
#undef GRAPHRUN_OPERATOR

Value operator-(Value a) {
  return applied("neg", {a});
}

}  // namespace graphrun
