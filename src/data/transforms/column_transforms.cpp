#include "data/transforms/column_transforms.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/names_of.h"
#include "data/csv/missing.h"
#include "data/sources/columns.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

InputDecl as_input(const std::string& column, const Shape& sample) {
  return {column, sample, DType::f64, false};
}

ArrayPtr raw(const NamedArray& column, const FitContext& table) {
  ArrayPtr array = column.read();
  if (!array || array->shape.rank() == 0) return array;
  if (table.see) table.see(*array);
  return fill_gaps(column, array, table);
}

// Record of the list's numeric steps: fitted to the training rows, or loaded with weights.
void fit_numbers(Pipeline& pipeline, const NamedArray& column, const ArrayPtr& array, const InputDecl& input,
                 const FitContext& table) {
  const std::string key = fmt::format("{}:{}", column.name, pipeline.names());
  if (const std::optional<Rows> train = table.rows_to_fit(array->rows())) {
    std::vector<std::string> warnings;
    const std::optional<Standardization> fitted = pipeline.fit({array, *train}, column.name, warnings);
    for (std::string& warning : warnings) table.files.warn(std::move(warning));
    if (!fitted) return;
    std::vector<double> numbers = fitted->shift;
    numbers.insert(numbers.end(), fitted->scale.begin(), fitted->scale.end());
    table.fit.set(key, std::move(numbers));
  }
  if (!pipeline.unfitted(input)) return;
  const std::vector<double>* known = table.fit.find(key);
  if (!known || known->size() % 2 != 0)
    throw Error(ErrorKind::input, "weights.fitted",
                fmt::format("no numbers for the transforms of column '{}' came from the training rows", column.name),
                "the list of transforms must be that of the training");
  const auto half = known->begin() + static_cast<std::ptrdiff_t>(known->size() / 2);
  const Standardization given{column.name, {known->begin(), half}, {half, known->end()}};
  pipeline.adopt(&given, input);
}

Array as_array(const HostTensor& tensor, std::vector<std::string> names) {
  const std::span<const double> values = tensor.elements<double>();
  return {tensor.shape(), std::vector<double>(values.begin(), values.end()), std::move(names)};
}

}  // namespace

void ColumnTransforms::read(json::Reader& reader, const json::Ref& section, const json::Member& member) {
  section_ = section;
  ColumnPipeline& entry = entries_[member.key];
  entry.member = &member;
  entry.pipeline.read(reader, section.member(member), as_input(member.key, {}));
}

void ColumnTransforms::check_names(json::Reader& reader, const Table& table, std::span<const InputDecl> inputs) const {
  for (const auto& [name, entry] : entries_) {
    if (table.find(name)) continue;
    std::vector<std::string> names = names_of(inputs);
    const std::vector<std::string> columns = table.names();
    names.insert(names.end(), columns.begin(), columns.end());
    reader.report_key(section_, *entry.member, "data.transform",
                      fmt::format("there is no input and no column '{}'; the source has {}", name, listed(columns)),
                      did_you_mean(name, names));
  }
}

ArrayPtr ColumnTransforms::numbers_of(const NamedArray& column, const FitContext& table) const {
  const auto found = entries_.find(column.name);
  if (found == entries_.end()) return raw(column, table);
  Pipeline pipeline = found->second.pipeline;
  const ClassStep* classes = pipeline.class_step();
  ArrayPtr array = classes ? classes_of(column, *classes, column.name, table) : raw(column, table);
  if (!array || array->shape.rank() == 0) return array;
  std::vector<std::string> names;
  if (classes && !classes->weighs) {
    const auto words = data::labels_of(*classes, column.name, table.fit.provenance);
    pipeline.set_classes(words->size());
    for (const std::string& word : *words) names.push_back(fmt::format("{}[{}]", column.name, word));
  }
  InputDecl input = as_input(column.name, Shape(array->shape.dims().subspan(1)));
  fit_numbers(pipeline, column, array, input, table);
  input.sample = pipeline.result_of(input.sample, column.name).value_or(input.sample);
  if (static_cast<std::int64_t>(names.size()) != input.sample.elements()) names = array->columns;
  const HostTensor values = pipeline.apply({array, {0, array->rows()}}, "column", input);
  if (table.fit.is_given()) {
    const auto numbers = values.elements<double>();
    const auto far = std::ranges::count_if(numbers, [&](double z) { return is_far(pipeline.names(), z); });
    table.files.count_far(column.name, far);
  }
  return std::make_shared<const Array>(as_array(values, std::move(names)));
}

ArrayPtr ColumnTransforms::shape_of(const NamedArray& column, const FitContext& table) const {
  const auto without_values = [](const Shape& shape, bool has_bytes) {
    Array array{shape, {}};
    if (has_bytes) array.values = std::vector<std::uint8_t>();
    return std::make_shared<const Array>(std::move(array));
  };
  const auto found = entries_.find(column.name);
  const bool transforms = found != entries_.end();  // to numbers in double precision
  if (column.shape && column.shape->rank() > 0) return without_values(*column.shape, column.has_bytes && !transforms);
  const ClassStep* classes = found == entries_.end() ? nullptr : found->second.pipeline.class_step();
  if (!classes || !column.cells) {
    const ArrayPtr array = column.read();
    return array && array->shape.rank() > 0 ? without_values(array->shape, array->has_bytes() && !transforms) : array;
  }
  Pipeline pipeline = found->second.pipeline;
  if (const auto words = data::labels_of(*classes, column.name, table.fit.provenance))
    pipeline.set_classes(words->size());
  const std::optional<Shape> sample = pipeline.result_of({}, column.name);
  Array array{Shape{column.cells->rows()}, {}};
  array.width_known = sample.has_value();
  if (sample) {
    for (const std::int64_t extent : sample->dims()) array.shape.push_back(extent);
  }
  return std::make_shared<const Array>(std::move(array));
}

const Pipeline* ColumnTransforms::find(const std::string& column) const {
  const auto found = entries_.find(column);
  return found == entries_.end() ? nullptr : &found->second.pipeline;
}

std::optional<std::vector<std::string>> ColumnTransforms::labels_of(const std::string& column,
                                                                    const Provenance& provenance) const {
  const auto found = entries_.find(column);
  const ClassStep* classes = found == entries_.end() ? nullptr : found->second.pipeline.class_step();
  return classes && !classes->weighs ? data::labels_of(*classes, column, provenance) : std::nullopt;
}

}  // namespace graphrun::data
