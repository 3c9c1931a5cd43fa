#include "session/formulas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/expression.h"
#include "graphrun/session.h"

namespace graphrun {
namespace {

using data::Array;
using data::ArrayPtr;
using data::FormulaColumn;
using data::NamedArray;
using expression::ExpressionError;

HostTensor as_f32(const Array& array) {
  HostTensor tensor(DType::f32, array.shape);
  const std::span<float> to = tensor.elements<float>();
  std::visit(
      [&](const auto& from) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(from[i]);
      },
      array.values);
  return tensor;
}

Array as_array(const HostTensor& tensor) {
  const auto copy = [&]<class T>(std::span<const T> values) { return std::vector<T>(values.begin(), values.end()); };
  switch (tensor.dtype()) {
    case DType::f32:
      return {tensor.shape(), copy(tensor.elements<float>())};
    case DType::i32:
      return {tensor.shape(), copy(tensor.elements<std::int32_t>())};
    case DType::boolean:
      return {tensor.shape(), copy(tensor.elements<std::uint8_t>())};
    case DType::f64:
      return {tensor.shape(), copy(tensor.elements<double>())};
    case DType::u64:
      break;
  }
  throw Error(ErrorKind::input, "data.formula", "a formula gives f32, i32 or bool, not u64");
}

bool has_values(const Array& array) {
  return std::visit([](const auto& values) { return !values.empty(); }, array.values) || array.shape.elements() == 0;
}

// Runs f; what it throws is reported at the formula.
template <class F>
auto attempt(json::Reader& reader, const json::Place& formula, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const ExpressionError& error) {
    reader.report_inside(formula, error.offset, error);
  } catch (const Error& error) {
    reader.report(formula, error);
  }
  return {};
}

// One value a row, or one tensor a row.
void check_rows(const TensorType& type, std::int64_t rows) {
  if (type.rows == 1 && type.shape.rank() > 0 && type.shape[0] == rows) return;
  throw Error(ErrorKind::input, "data.formula",
              fmt::format("a formula gives a value for each row; this gives one {}", to_string(type)));
}

}  // namespace

std::optional<std::vector<const NamedArray*>> ModelFormulas::columns(json::Reader& reader, const json::Place& formula,
                                                                     const data::Table& table) const {
  using Columns = std::optional<std::vector<const NamedArray*>>;
  return attempt(reader, formula, [&]() -> Columns {
    const expression::Expression parsed = expression::parse(formula.value->string);
    if (!parsed.name.empty())
      throw ExpressionError(0, "data.formula", "a formula names no value: it belongs to the input whose key it is");
    const std::size_t before = reader.errors();
    std::vector<const NamedArray*> named;
    for (const expression::Term& term : parsed.terms) {
      if (term.kind != expression::Term::Kind::name || term.literal) continue;
      if (const NamedArray* array = table.find(term.word)) {
        if (std::find(named.begin(), named.end(), array) == named.end()) named.push_back(array);
      } else if (!constants_.contains(term.word) && term.word != "pi" && term.word != "e") {
        const std::string near = nearest_name(term.word, table.names());
        reader.report_inside(
            formula, term.at, "data.column",
            fmt::format("no column '{}'; the source has {}", term.word, fmt::join(table.names(), ", ")),
            near.empty() ? "" : fmt::format("did you mean '{}'?", near));
      }
    }
    if (reader.errors() != before) return std::nullopt;
    if (named.empty()) throw ExpressionError(0, "data.formula", "the formula names no column");
    return named;
  });
}

ArrayPtr ModelFormulas::evaluate(json::Reader& reader, const json::Place& formula,
                                 std::span<const FormulaColumn> columns) const {
  return attempt(reader, formula, [&]() -> ArrayPtr {
    const std::int64_t rows = columns.front().array->rows();
    GraphBuilder builder(rows);
    GraphBuilder::Impl& graph = builder.impl();
    for (const auto& [name, value] : constants_) graph.constants.emplace(name, value);
    std::vector<std::pair<std::string, HostTensor>> values;
    bool is_complete = true;
    for (const FormulaColumn& column : columns) {
      graph.constants.erase(column.name);
      std::vector<std::int64_t> shape(column.array->shape.dims().begin(), column.array->shape.dims().end());
      shape[0] = kBatch;
      builder.input(column.name, shape);
      is_complete = is_complete && has_values(*column.array);
      if (is_complete) values.emplace_back(column.name, as_f32(*column.array));
    }
    const expression::Expression parsed = expression::parse(formula.value->string);
    const expression::Findings findings = expression::check({graph}, parsed);
    for (const ExpressionError& error : findings.errors) reader.report_inside(formula, error.offset, error);
    if (!findings.errors.empty()) return nullptr;
    const Value result{expression::build(graph, parsed)};
    const TensorType type = builder.type(result);
    check_rows(type, rows);
    if (!is_complete) return std::make_shared<const Array>(Array{type.shape, {}});
    Model model(std::move(builder));
    model.name = "formula";
    model.outputs = {{result, "formula", ""}};
    return std::make_shared<const Array>(as_array(Session(std::move(model)).predict(values)));
  });
}

}  // namespace graphrun
