#include "session/formulas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "base/input_limit.h"
#include "data/sources/columns.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/ir/needed.h"
#include "graph/ops/make.h"
#include "graphrun/elements.h"
#include "session/batch_dependence.h"
#include "session/compiling/compiled_model.h"

namespace graphrun {
namespace {

using data::Array;
using data::ArrayPtr;
using data::FormulaColumn;
using data::NamedArray;
using data::Rows;
using expression::ExpressionError;

// Selects f64 for values that f32 would round.
DType dtype_of(std::span<const FormulaColumn> columns) {
  const bool is_wide = std::any_of(columns.begin(), columns.end(), [](const FormulaColumn& column) {
    return std::holds_alternative<std::vector<double>>(column.array->values) ||
           std::holds_alternative<std::vector<std::int32_t>>(column.array->values);
  });
  return is_wide ? DType::f64 : DType::f32;
}

HostTensor rows_of(const Array& array, const Rows& rows, DType dtype) {
  Shape shape = array.shape;
  shape[0] = rows.count;
  require_within_input_limit(saturating_product(static_cast<std::uint64_t>(shape.elements()), size_of(dtype)),
                             "a column of a formula");
  HostTensor tensor(dtype, shape);
  const auto width = static_cast<std::size_t>(shape.elements() / std::max<std::int64_t>(rows.count, 1));
  with_elements(tensor, [&]<class T>(std::span<T> to) {
    std::visit(
        [&](const auto& from) {
          for (std::int64_t r = 0; r < rows.count; ++r) {
            const std::size_t begin = static_cast<std::size_t>(rows.row(r)) * width;
            const std::size_t row = static_cast<std::size_t>(r) * width;
            for (std::size_t c = 0; c < width; ++c) to[row + c] = static_cast<T>(from[begin + c]);
          }
        },
        array.values);
  });
  return tensor;
}

Array as_array(const HostTensor& tensor) {
  return with_elements(tensor, [&]<class T>(std::span<const T> values) -> Array {
    if constexpr (!std::is_same_v<T, std::uint64_t>)
      return {tensor.shape(), std::vector<T>(values.begin(), values.end())};
    throw Error(ErrorKind::input, "data.formula", "a formula gives f32, i32 or bool, not u64");
  });
}

bool has_values(const Array& array) {
  return std::visit([](const auto& values) { return !values.empty(); }, array.values) || array.shape.elements() == 0;
}

// Replaces calls of dates.h ("year(sold)") by column names, if the table has such a column.
template <class HasColumn>
expression::Expression with_dates(expression::Expression parsed, HasColumn has_column) {
  using Kind = expression::Term::Kind;
  for (expression::Term& term : parsed.terms) {
    if (term.kind != Kind::call || term.operands.size() != 1 || !term.attributes.empty()) continue;
    expression::Term& operand = parsed.terms[term.operands.front()];
    const std::string name = fmt::format("{}({})", term.word, operand.word);
    if (operand.kind != Kind::name || !has_column(name)) continue;
    term.kind = Kind::name;
    term.word = name;
    term.operands.clear();
    operand.kind = Kind::number;  // unused
  }
  return parsed;
}

// Columns under names that are valid in the graph, unlike "house price" and "year(sold)".
struct Renamed {
  expression::Expression parsed;
  std::vector<FormulaColumn> columns;
};

Renamed renamed(const std::string& formula, std::span<const FormulaColumn> columns) {
  std::map<std::string, std::string> names;
  for (const FormulaColumn& column : columns)
    names.emplace(column.name, is_name(column.name) ? column.name : fmt::format("column..{}", names.size()));
  Renamed result{with_dates(expression::parse(formula), [&](const std::string& name) { return names.contains(name); }),
                 {}};
  for (expression::Term& term : result.parsed.terms) {
    const auto name = names.find(term.word);
    if (term.kind == expression::Term::Kind::name && !term.literal && name != names.end()) term.word = name->second;
  }
  for (const FormulaColumn& column : columns) result.columns.push_back({names.at(column.name), column.array});
  return result;
}

// Runs f and reports its exceptions at the formula.
template <class F>
auto attempt(json::Reader& reader, const json::Ref& formula, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const ExpressionError& error) {
    reader.report_inside(formula, error.offset, error);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;  // running out of memory is not an error of the formula
    reader.report(formula, error);
  }
  return {};
}

// Requires one value or one tensor per row.
void check_rows(const TensorType& type) {
  if (type.rows == 1) return;
  throw Error(ErrorKind::input, "data.formula",
              fmt::format("a formula gives a value for each row; this gives one {}", to_string(type)));
}

// A formula over `rows` rows, as an uncompiled graph.
class FormulaGraph {
 public:
  FormulaGraph(const expression::Expression& parsed, const ModelFormulas::Constants& constants,
               std::span<const FormulaColumn> columns, std::int64_t rows, bool is_wide)
      : builder_(rows), dtype_(is_wide ? DType::f64 : dtype_of(columns)) {
    for (const auto& [name, value] : constants) impl().constants.emplace(name, value);
    for (const FormulaColumn& column : columns) {
      impl().constants.erase(column.name);
      std::vector<std::int64_t> shape(column.array->shape.dims().begin(), column.array->shape.dims().end());
      shape[0] = kBatch;
      builder_.input(column.name, shape);
    }
    findings_ = expression::check({impl()}, parsed);
    if (!findings_.errors.empty()) return;
    result_ = expression::build(impl(), parsed);
    check_rows(type(result_));
    if (dtype_ == DType::f64) widen();
    aggregates_ = aggregates_of(impl().graph, result_);
  }

  const std::vector<ExpressionError>& errors() const { return findings_.errors; }
  const TensorType& type(ir::NodeId id) const { return builder_.type(builder_.impl().value(id)); }
  DType dtype() const { return dtype_; }
  ir::NodeId result() const { return result_; }
  const std::vector<ir::NodeId>& aggregates() const { return aggregates_; }
  const std::vector<ir::NodeId>& inputs() const { return builder_.impl().inputs; }  // in the order of the columns
  const ir::Graph& graph() const { return builder_.impl().graph; }
  bool draws() const {
    const ir::NodeId wanted[] = {result_};
    return ir::needed_by(builder_.impl().graph, wanted)[builder_.impl().step];
  }

  // Turns the aggregate into an input, and returns its name.
  std::string replace(ir::NodeId aggregate) {
    ir::Graph& graph = impl().graph;
    const TensorType type = graph[aggregate].type;
    const ir::NodeId input = make::source(impl().builder, "input", {type.dtype, type.shape, 0}).id;
    // In its own place, so that its readers still come after it.
    ir::Node& node = graph[aggregate];
    node.op = graph[input].op;
    node.def = graph[input].def;
    node.inputs.clear();
    node.attrs = graph[input].attrs;
    impl().inputs.push_back(aggregate);
    return node.name;
  }

  // Plans and runs it, once.
  std::vector<HostTensor> run(const std::vector<ir::NodeId>& wanted,
                              const std::map<std::string, HostTensor>& values) && {
    const std::int64_t rows = builder_.batch();
    Model model(std::move(builder_));
    model.name = "formula";
    for (const ir::NodeId id : wanted)
      model.outputs.push_back({model.graph.impl().value(id), fmt::format("value{}", id), ""});
    const std::shared_ptr<Executor> executor = choose_executor(dtype_ == DType::f64 ? "ref" : "cpu", nullptr, 0);
    const CompiledModel compiled = compile_model(model, {&executor, 1}, {});
    const std::unique_ptr<Runnable> runnable = executor->load(compiled.program);
    const StepPhase& phase = compiled.step.phases.front();
    for (const auto& [name, node] : phase.inputs) runnable->write(compiled.buffer(node), values.at(name).bytes());
    const auto count = static_cast<std::int32_t>(rows);
    runnable->write(compiled.buffer(phase.count), std::as_bytes(std::span(&count, 1)));
    runnable->run(0, 1);
    std::vector<HostTensor> results;
    for (const ir::NodeId node : phase.outputs) {
      const TensorType& type = compiled.program.buffers[compiled.buffer(node)].type;
      runnable->read(compiled.buffer(node), results.emplace_back(type.dtype, type.shape).bytes());
    }
    return results;
  }

 private:
  GraphBuilder::Impl& impl() { return builder_.impl(); }

  // Same graph with f64 in place of f32: the type of the columns does not decide whether a formula is valid.
  void widen() {
    GraphBuilder wide(builder_.batch());
    wide.impl().constants.clear();  // may clash with column names
    const ir::Graph& graph = impl().graph;
    std::vector<ir::NodeId> moved(graph.size(), ir::kNoNode);
    moved[graph.phases[0].row_count] = wide.impl().graph.phases[0].row_count;
    moved[impl().step] = wide.impl().step;
    if (const ir::NodeId flag = impl().builder.training_or_none(); flag != ir::kNoNode)
      moved[flag] = wide.impl().builder.training();
    for (const ir::NodeId input : impl().inputs) {
      std::vector<std::int64_t> shape(graph[input].type.shape.dims().begin(), graph[input].type.shape.dims().end());
      shape[0] = kBatch;
      moved[input] = wide.input(graph[input].name, shape, DType::f64).id;
    }
    result_ = ir::copy_as_f64(wide.impl().builder, graph, result_, [&](ir::NodeId id) { return moved[id]; });
    builder_ = std::move(wide);
  }

  GraphBuilder builder_;
  DType dtype_;
  expression::Findings findings_;
  ir::NodeId result_ = ir::kNoNode;
  std::vector<ir::NodeId> aggregates_;
};

}  // namespace

std::optional<std::vector<const NamedArray*>> ModelFormulas::columns(json::Reader& reader, const json::Ref& formula,
                                                                     const data::Table& table) const {
  using Columns = std::optional<std::vector<const NamedArray*>>;
  return attempt(reader, formula, [&]() -> Columns {
    const expression::Expression parsed = with_dates(expression::parse(formula.value->string),
                                                     [&](const auto& name) { return table.find(name) != nullptr; });
    if (!parsed.name.empty())
      throw ExpressionError(0, "data.formula", "a formula names no value: it belongs to the input whose key it is");
    const std::size_t before = reader.errors();
    std::vector<const NamedArray*> named;
    std::unordered_set<const NamedArray*> seen;
    for (const expression::Term& term : parsed.terms) {
      if (term.kind != expression::Term::Kind::name || term.literal) continue;
      if (const NamedArray* array = table.find(term.word)) {
        if (seen.insert(array).second) named.push_back(array);
      } else if (constants_.contains(term.word) || term.word == "pi" || term.word == "e") {
        continue;
      } else if (reader.full()) {
        reader.report_more(1);
      } else {
        reader.report_inside(formula, term.at, "data.column",
                             fmt::format("no column '{}'; the source has {}", term.word, data::listed(table.names())),
                             did_you_mean(term.word, table.names()));
      }
    }
    if (reader.errors() != before) return std::nullopt;
    if (named.empty()) throw ExpressionError(0, "data.formula", "the formula names no column");
    return named;
  });
}

ArrayPtr ModelFormulas::evaluate(json::Reader& reader, const json::Ref& formula, std::span<const FormulaColumn> given,
                                 const std::optional<Rows>& train, std::vector<std::vector<double>>& aggregates) const {
  return attempt(reader, formula, [&]() -> ArrayPtr {
    const Renamed here = renamed(formula.value->string, given);
    const expression::Expression& parsed = here.parsed;
    const std::vector<FormulaColumn>& columns = here.columns;
    const std::int64_t rows = columns.front().array->rows();
    FormulaGraph graph(parsed, constants_, columns, rows, is_wide_);
    for (const ExpressionError& error : graph.errors()) reader.report_inside(formula, error.offset, error);
    if (!graph.errors().empty()) return nullptr;
    const TensorType type = graph.type(graph.result());
    if (!std::all_of(columns.begin(), columns.end(), [](const auto& column) { return has_values(*column.array); }))
      return std::make_shared<const Array>(Array{type.shape.with_batch(rows), {}});
    if (is_prediction_ && graph.draws()) {
      throw Error(ErrorKind::input, "data.formula",
                  "the formula draws random numbers, which differ from place to place: a row has no prediction");
    }
    const auto values_of = [&](const Rows& chosen) {
      std::map<std::string, HostTensor> values;
      for (const FormulaColumn& column : columns)
        values.emplace(column.name, rows_of(*column.array, chosen, graph.dtype()));
      return values;
    };
    if (train && !graph.aggregates().empty()) {
      FormulaGraph fitted(parsed, constants_, columns, train->count, is_wide_);
      const std::vector<ir::NodeId> wanted = fitted.aggregates();
      for (const HostTensor& value : std::move(fitted).run(wanted, values_of(*train)))
        aggregates.push_back(as_doubles(value));
    }
    std::map<std::string, HostTensor> values = values_of({0, rows});
    const std::vector<ir::NodeId> wanted = graph.aggregates();
    if (wanted.size() != aggregates.size()) {
      throw Error(
          ErrorKind::input, "data.formula",
          fmt::format("the formula takes {} number{} from the training rows, and none came of the same formula there",
                      wanted.size(), wanted.size() == 1 ? "" : "s"),
          "an aggregate such as mean(a) is fitted once, to the training split, and weights keep it");
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const TensorType type_of_one = graph.type(wanted[i]);
      if (static_cast<std::int64_t>(aggregates[i].size()) != type_of_one.shape.elements()) {
        throw Error(ErrorKind::input, "data.formula",
                    fmt::format("an aggregate of the formula has {} number{}, and {} were fitted to the training rows",
                                type_of_one.shape.elements(), type_of_one.shape.elements() == 1 ? "" : "s",
                                aggregates[i].size()));
      }
      values.emplace(graph.replace(wanted[i]), from_doubles(aggregates[i], type_of_one));
    }
    const auto result = graph.result();
    return std::make_shared<const Array>(as_array(std::move(graph).run({result}, values).front()));
  });
}

Var ModelFormulas::build(const std::string& formula, std::span<const std::pair<std::string, Var>> given,
                         const std::vector<std::vector<double>>& aggregates) const {
  std::vector<FormulaColumn> columns;
  for (const auto& [name, value] : given)
    columns.push_back({name, std::make_shared<const Array>(Array{value.type().shape, std::vector<double>()})});
  if (columns.empty()) throw Error(ErrorKind::input, "data.formula", "the formula names no column");
  const Renamed here = renamed(formula, columns);
  const FormulaGraph graph(here.parsed, constants_, here.columns, 1, is_wide_);
  if (!graph.errors().empty()) throw graph.errors().front();
  const std::vector<ir::NodeId>&inputs = graph.inputs(), &wanted = graph.aggregates();
  if (graph.draws() || wanted.size() != aggregates.size()) {
    throw Error(ErrorKind::input, "export.transform",
                fmt::format("the formula '{}' {} and is not exported", formula,
                            graph.draws() ? "draws random numbers" : "has aggregates without fitted values"));
  }
  ir::Builder& to = *given.front().second.make;
  std::map<ir::NodeId, ir::NodeId> known;
  for (std::size_t i = 0; i < inputs.size(); ++i) known[inputs[i]] = given[i].second.id;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const TensorType type{DType::f64, graph.type(wanted[i]).shape, 0};
    known[wanted[i]] = make::source(to, "constant", type, {{"values", aggregates[i]}}).id;
  }
  const ir::NodeId result = ir::copy_as_f64(to, graph.graph(), graph.result(), [&](ir::NodeId id) {
    const auto found = known.find(id);
    return found == known.end() ? ir::kNoNode : found->second;
  });
  return make::cast({&to, result}, DType::f64);
}

}  // namespace graphrun
