#include "session/deployed_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_reader.h"
#include "base/text.h"
#include "data/csv/categories.h"
#include "data/csv/dates.h"
#include "data/csv/missing.h"
#include "data/transforms/column_transforms.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/step/step_graph.h"
#include "graph/ir/needed.h"
#include "graph/ops/make.h"
#include "graphrun/class_outputs.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "session/formulas.h"

namespace graphrun {
namespace {

using ir::NodeId;

[[noreturn]] void reject_column(const std::string& column, const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorKind::input, "export.transform", fmt::format("column '{}': {} is not exported", column, what), hint);
}

Var constant_row(ir::Builder& builder, const std::vector<double>& values, DType dtype, const Shape& shape) {
  return make::source(builder, "constant", {dtype, shape, 0}, {{"values", values}});
}

Var floor_of(Var x, double divisor) {
  return make::op("floor", {x / divisor});
}

// A function of dates.h, from seconds since 1970-01-01; the calendar is that of dates.cpp.
Var date_part(std::string_view function, Var seconds) {
  if (function == "days") return seconds / 86400;
  if (function == "seconds") return seconds;
  const Var days = floor_of(seconds, 86400);
  if (function == "weekday") {
    const Var monday = days + 3, week = floor_of(monday, 7) * 7;
    return monday - week + 1;
  }
  if (function == "hour" || function == "minute") {
    const Var time = seconds - days * 86400, hour = floor_of(time, 3600);
    return function == "hour" ? hour : floor_of(time - hour * 3600, 60);
  }
  const Var shifted_days = days + 719468, era = floor_of(shifted_days, 146097), of_era = shifted_days - era * 146097;
  const Var leap = floor_of(of_era, 1460), century = floor_of(of_era, 36524), last = floor_of(of_era, 146096);
  const Var year = floor_of(of_era - leap + century - last, 365), fours = floor_of(year, 4);
  const Var hundreds = floor_of(year, 100), of_year = of_era - (year * 365 + fours - hundreds);
  const Var from_march = floor_of(of_year * 5 + 2, 153);
  if (function == "day") return of_year - floor_of(from_march * 153 + 2, 5) + 1;
  const Var next_year = floor_of(from_march + 2, 12);  // 1 in January and February
  const Var months = next_year * 12, eras = era * 400;
  if (function == "month") return from_march + 3 - months;
  return year + eras + next_year;
}

// "year(sold)" as function and column; empty strings for another text.
std::pair<std::string, std::string> date_call(const std::string& text) {
  for (const data::Doc& function : data::date_functions()) {
    const std::string start = fmt::format("{}(", function.name);
    if (text.starts_with(start) && text.ends_with(')') && text.find(')') == text.size() - 1)
      return {std::string(function.name), text.substr(start.size(), text.size() - start.size() - 1)};
  }
  return {};
}

class ColumnGraph {
 public:
  ColumnGraph(SessionAccess::Impl& session, const std::string& text)
      : session_(session),
        old_(session.loaded.model.graph.impl()),
        document_(json::parse(session.loaded.model.file, text)),
        fit_(session.loaded.model.data),
        graph_(session.loaded.model.graph.batch()) {}

  std::optional<ColumnModel> run() {
    read_section();
    const std::vector<ClassOutput> classes = class_outputs(session_.loaded.model);
    bool is_changed = false;
    for (const auto& [name, node] : session_.predictor.predicting().inputs) is_changed = add_input(name) || is_changed;
    for (const ClassOutput& output : classes) is_changed = is_changed || has_label(output);
    if (!is_changed) return std::nullopt;
    for (const NodeId input : old_.inputs) {
      if (!moved_.contains(input)) copy_input(input);
    }
    const ir::Graph source = with_phase_choices(old_.builder, false);
    std::vector<OutputSpec> outputs;
    for (const OutputSpec& output : session_.loaded.model.outputs)
      outputs.push_back({impl().value(copy(source, output.value.id)), output.name, output.target});
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (!has_label(classes[i])) continue;
      const std::string name = fmt::format("class..{}", i);
      outputs.push_back({impl().value(class_of(classes[i], var(outputs[i].value.id)).id), name, ""});
      columns_[name] = {outputs[i].target, {"code of the class; -1 if the numbers are NaN", classes[i].words}};
    }
    ColumnModel result{Model(std::move(graph_)), std::move(columns_)};
    result.model.name = session_.loaded.model.name;
    result.model.train.precision = session_.loaded.model.train.precision;
    result.model.outputs = std::move(outputs);
    for (const Standardization& one : session_.loaded.model.data.standardizations) {
      if (!done_.contains(one.input)) result.model.data.standardizations.push_back(one);
    }
    return result;
  }

 private:
  GraphBuilder::Impl& impl() { return graph_.impl(); }
  ir::Builder& builder() { return impl().builder; }
  Var var(NodeId id) { return {&builder(), id}; }
  static bool has_label(const ClassOutput& output) {
    return output.is_class && !output.words.empty() && !output.is_multi_label;
  }

  void read_section() {
    const json::Ref root = reader_.root();
    const json::Member* data = root.value->find("data");
    if (data == nullptr) return;
    const json::Ref section = root.member(*data);
    for (const char* key : {"source", "train"}) {
      if (const json::Member* own = section.value->find(key)) source_ = section.member(*own);
    }
    for (const char* key : {"csv", "records", "grid"}) is_table_ = is_table_ || (source_ && source_->value->find(key));
    const json::Member* transform = section.value->find("transform");
    if (transform == nullptr) return;
    for (const json::Member& member : transform->value.members) {
      const NodeId input = old_.builder.find(member.key);
      if (std::find(old_.inputs.begin(), old_.inputs.end(), input) == old_.inputs.end()) {
        transforms_.read(reader_, section.member(*transform), member);
      } else {
        const TensorType& type = old_.graph[input].type;
        of_inputs_[member.key].read(reader_, section.member(*transform).member(member),
                                    {member.key, Shape(type.shape.dims().subspan(1)), type.dtype});
      }
    }
  }

  // Columns and formulas that the input lists; empty if it takes an array.
  std::vector<std::string> listed(const std::string& input) {
    if (!source_) return {};
    if (const json::Member* said = source_->value->find(input)) {
      if (said->value.kind == json::Kind::string) return {said->value.string};
      std::vector<std::string> names;
      for (const json::Value& item : said->value.items) names.push_back(item.string);
      return names;
    }
    const auto took = fit_.provenance.columns.find(input);
    if (took != fit_.provenance.columns.end()) return took->second;
    const auto list = of_inputs_.find(input);
    return list != of_inputs_.end() && list->second.class_step() ? std::vector{input} : std::vector<std::string>();
  }

  // Whether a text computes a value from columns. A text without spaces and parentheses ("capital-gain") may be the
  // name of a column: it is exported as a number that the caller passes, as are formulas over arrays.
  bool is_formula(const std::string& text) const {
    if (!is_table_ || text.find_first_of(" (`'") == std::string::npos) return false;
    try {
      return expression::parse(text).terms.size() > 1;
    } catch (const Error&) {
      return false;  // "house price"
    }
  }

  data::Missing missing_of(const std::string& column) {
    const json::Member* said = source_ ? source_->value->find("missing") : nullptr;
    return said ? data::read_missing(reader_, source_->member(*said), {column}, true).front() : data::Missing();
  }

  // Replaces the input by its columns if they are preprocessed. Returns whether they are.
  bool add_input(const std::string& name) {
    const std::vector<std::string> items = listed(name);
    const auto list = of_inputs_.find(name);
    const data::ClassStep* classes = list == of_inputs_.end() ? nullptr : list->second.class_step();
    const bool is_changed = classes != nullptr || std::any_of(items.begin(), items.end(), [&](const std::string& item) {
                              return transforms_.find(item) || missing_of(item).is_filled() || is_formula(item);
                            });
    if (!is_changed) return false;
    const NodeId old = old_.builder.find(name);
    const TensorType type = old_.graph[old].type;
    const Standardization* units = session_.loaded.fitted_of(name);
    Var all;
    if (classes != nullptr) {
      all = classes_of(items.front(), name, list->second, type.dtype);
    } else {
      std::vector<Var> parts;
      std::size_t offset = 0;
      for (const std::string& item : items) {
        const Var part = item_of(item, name);
        const std::int64_t width = part.type().shape.rank() == 1 ? 1 : part.type().shape[1];
        parts.push_back(make::reshape(part, Shape{type.shape[0], width}));
        for (auto& [key, column] : columns_) {
          if (units && column.name == item && column.units.scale.empty() && offset < units->scale.size())
            column.units = {"", {units->shift[offset]}, {units->scale[offset]}, units->log};
        }
        offset += static_cast<std::size_t>(width);
      }
      all = make::concat(parts, 1);
      const auto steps = list == of_inputs_.end() ? std::span<const data::TransformStep>() : list->second.steps();
      if (!steps.empty() && steps.back().kind == data::Transform::one_hot)
        all = one_hot_number(items.front(), make::reshape(all, Shape{type.shape[0]}), steps);
    }
    if (units && !classes) {
      if (units->log != LogTransform::none) all = make::op(units->log == LogTransform::log ? "log" : "log1p", {all});
      const Shape row{static_cast<std::int64_t>(units->shift.size())};
      const Var shift = constant_row(builder(), units->shift, DType::f64, row);
      all = all - shift;
      all = all / constant_row(builder(), units->scale, DType::f64, row);
    }
    if (all.type().shape.with_batch(1).elements() != type.shape.with_batch(1).elements())
      reject_column(items.front(), fmt::format("its place in the input '{}'", name));
    moved_[old] = make::reshape(make::cast(all, type.dtype), type.shape).id;
    done_.insert(name);
    return true;
  }

  // (batch) or (batch, width), f64.
  Var item_of(const std::string& item, const std::string& input) {
    if (!transforms_.find(item) && date_call(item).first.empty() && is_formula(item)) return formula_of(item, input);
    return column_of(item);
  }

  Var formula_of(const std::string& text, const std::string& input) {
    const expression::Expression parsed = expression::parse(text);
    using Kind = expression::Term::Kind;
    std::set<std::string> names;
    std::set<expression::TermId> dates;
    for (const expression::Term& term : parsed.terms) {
      if (term.kind != Kind::call || term.operands.size() != 1) continue;
      const std::string call = fmt::format("{}({})", term.word, parsed.terms[term.operands[0]].word);
      if (parsed.terms[term.operands[0]].kind != Kind::name || date_call(call).first.empty()) continue;
      names.insert(call);
      dates.insert(term.operands[0]);
    }
    for (expression::TermId id = 0; id < parsed.terms.size(); ++id) {
      const expression::Term& term = parsed.terms[id];
      if (term.kind == Kind::name && !term.literal && !dates.contains(id) && !old_.constants.contains(term.word))
        names.insert(term.word);
    }
    std::vector<std::pair<std::string, Var>> columns;
    for (const std::string& name : names) columns.emplace_back(name, column_of(name));
    std::vector<std::vector<double>> aggregates;
    while (const std::vector<double>* known =
               fit_.find(fmt::format("{}:aggregate.{} of {}", input, aggregates.size(), text)))
      aggregates.push_back(*known);
    return ModelFormulas(old_.constants, session_.loaded.model.train.precision).build(text, columns, aggregates);
  }

  // Column of the table as an input of the graph, (batch).
  Var source_column(const std::string& name, DType dtype, const DeployedColumn& doc) {
    for (const auto& [key, column] : columns_) {
      if (column.name != name) continue;
      const Var known = var(builder().find(key));
      if (known.type().dtype != dtype || column.doc.categories != doc.categories)
        reject_column(name, "its use as a number and as a category");
      return known;
    }
    const std::string key = fmt::format("column..{}", columns_.size());
    columns_[key] = {name, doc};
    const std::int64_t shape[] = {kBatch};
    return var(impl().input(key, shape, dtype));
  }

  // A column after its transforms: (batch), or (batch, classes); f64.
  Var column_of(const std::string& name) {
    const auto known = values_.find(name);
    if (known != values_.end()) return var(known->second);
    const data::Pipeline* pipeline = transforms_.find(name);
    const Var values =
        pipeline && pipeline->class_step() ? classes_of(name, name, *pipeline, DType::f64) : number_of(name, pipeline);
    values_[name] = values.id;
    return values;
  }

  Var number_of(const std::string& name, const data::Pipeline* pipeline) {
    const auto [function, dates] = date_call(name);
    const std::string column = function.empty() ? name : dates;
    const data::Missing missing = missing_of(column);
    std::optional<double> fill;
    if (missing.is_filled()) {
      const bool is_value = missing.kind == data::Missing::Kind::value;
      const std::vector<double>* fitted =
          is_value ? nullptr
                   : fit_.find(
                         fmt::format("{}:{}", name, data::missing_docs()[static_cast<std::size_t>(missing.kind)].name));
      if (is_value) fill = parse_number<double>(missing.value);
      if (fitted && fitted->size() == 1) fill = fitted->front();
      if (!fill) reject_column(name, "\"missing\" without a fitted value");
    }
    std::string text = function.empty() ? "number" : "date, in seconds since 1970-01-01 00:00 UTC";
    if (fill) text += fmt::format("; NaN: missing, {} becomes {}", name, *fill);
    Var x = source_column(column, DType::f64, {text, {}});
    ColumnModel::Column& doc = columns_.at(key_of(column));
    if (!function.empty()) {
      doc.units = {"", {1.7e9}, {1e8}};
      x = date_part(function, x);
    }
    if (fill) x = make::op("where", {make::op("equal", {x, x}), x, make::like(*fill, x)});
    if (pipeline == nullptr || pipeline->names().empty()) return x;
    if (pipeline->steps().back().kind == data::Transform::one_hot) return one_hot_number(name, x, pipeline->steps());
    const std::vector<double>* record = fit_.find(fmt::format("{}:{}", name, pipeline->names()));
    if (record == nullptr || record->size() != 2)
      reject_column(name, fmt::format("the transform \"{}\" of several numbers", pipeline->names()));
    if (function.empty()) doc.units = {"", {(*record)[0]}, {(*record)[1]}, pipeline->log()};
    if (pipeline->log() != LogTransform::none)
      x = make::op(pipeline->log() == LogTransform::log ? "log" : "log1p", {x});
    return (x - (*record)[0]) / (*record)[1];
  }

  Var one_hot_number(const std::string& column, Var x, std::span<const data::TransformStep> steps) {
    if (steps.size() > 1) reject_column(column, "a transform next to \"one_hot\"");
    return one_hot(make::cast(x, DType::i32), steps.back().classes);
  }

  std::string key_of(const std::string& column) const {
    for (const auto& [key, one] : columns_)
      if (one.name == column) return key;
    throw std::logic_error("with_columns: no column " + column);
  }

  // `key` identifies the categories. As i32: the class; else f64, NaN for a code out of range.
  Var classes_of(const std::string& column, const std::string& key, const data::Pipeline& pipeline, DType dtype) {
    const data::ClassStep& step = *pipeline.class_step();
    if (step.weighs) reject_column(column, "the transform \"class_weight\"");
    if (is_formula(column)) reject_column(column, "a category that a formula computes");
    const auto words = data::labels_of(step, key, fit_.provenance);
    if (!words) reject_column(column, "a category without names in the weights");
    std::string text = "code of a category";
    std::optional<std::size_t> fill;
    if (const data::Missing missing = missing_of(column); missing.is_filled()) {
      const auto fitted = fit_.provenance.words.find(column);
      const std::string word = missing.kind == data::Missing::Kind::value ? missing.value
                               : fitted != fit_.provenance.words.end()    ? fitted->second
                                                                          : "";
      const auto place = std::find(words->begin(), words->end(), data::category_of(word));
      fill = static_cast<std::size_t>(place - words->begin());
      if (place == words->end() && step.other) --*fill;
      text += fmt::format("; -1: missing, becomes {}", *fill < words->size() ? (*words)[*fill] : word);
    }
    Var code = source_column(column, DType::i32, {text, *words, step.other});
    if (fill) {
      const Var is_gap = make::op("less", {code, make::like(0, code)});
      code = make::op("where", {is_gap, make::like(static_cast<double>(*fill), code), code});
    }
    if (!is_float(dtype)) return code;
    const Var rows = one_hot(code, static_cast<std::int64_t>(words->size()));
    const bool is_wide = std::any_of(pipeline.steps().begin(), pipeline.steps().end(),
                                     [](const auto& one) { return one.kind == data::Transform::one_hot; });
    if (is_wide) return rows;
    std::vector<double> numbers(words->size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
    return make::sum(rows * constant_row(builder(), numbers, DType::f64, Shape{std::ssize(numbers)}), {1}, false);
  }

  // 0 / 0 is NaN in the row of a code that is not a class.
  Var one_hot(Var code, std::int64_t classes) {
    const Var ones = make::cast(make::op("one_hot", {code}, {{"classes", classes}}), DType::f64);
    return ones / make::sum(ones, {1}, true);
  }

  // ClassOutput::class_of() of each row, i32 (batch); -1 if a number is NaN.
  Var class_of(const ClassOutput& output, Var values) {
    const Shape batch{values.type().shape[0]};
    const std::int64_t width = values.type().shape.with_batch(1).elements();
    const bool is_logit = output.numbers == ClassOutput::Numbers::sigmoid_logits;
    const bool is_joint = output.numbers == ClassOutput::Numbers::softmax_logits && width == 2;
    Var rows = make::reshape(values, Shape{batch[0], width});
    const Var sum = make::sum(rows, {1}, false);
    Var found;
    if (width > 2 || (width == 2 && output.thresholds.empty())) {
      found = make::op("argmax", {rows}, {{"axis", std::int64_t{1}}});
    } else {
      const Var wide = make::cast(rows, DType::f64);
      Var p = make::reshape(
          make::op("slice", {wide}, {{"axis", std::int64_t{1}}, {"start", width - 1}, {"stop", width}}), batch);
      if (is_joint) {
        const Var first =
            make::reshape(make::op("slice", {wide}, {{"axis", std::int64_t{1}}, {"stop", std::int64_t{1}}}), batch);
        p = make::op("sigmoid", {p - first});
      }
      const bool is_plain = output.thresholds.empty();
      if (is_logit && !is_plain) p = make::op("sigmoid", {p});
      const Var limit = make::like(!is_plain ? output.thresholds.back() : is_logit ? 0.0 : 0.5, p);
      found = make::cast(make::op(is_plain ? "greater" : "greater_equal", {p, limit}), DType::i32);
    }
    return make::op("where", {make::op("equal", {sum, sum}), found, make::like(-1, found)});
  }

  void copy_input(NodeId id) {
    const ir::Node& node = old_.graph[id];
    moved_[id] = impl().input(node.name, make::dims(node.type.shape), node.type.dtype);
  }

  NodeId copy(const ir::Graph& from, NodeId wanted) {
    moved_[from.phases[0].row_count] = impl().graph.phases[0].row_count;
    moved_[old_.step] = impl().step;
    for (const NodeId id : ir::needed_nodes(from, wanted, [&](NodeId i) { return moved_.contains(i); })) {
      if (moved_.contains(id)) continue;
      const ir::Node& node = from[id];
      const auto found = old_.parameters.find(id);
      if (found != old_.parameters.end() || old_.runtime.contains(id)) {
        GraphBuilder::Impl::Parameter parameter;
        if (found != old_.parameters.end()) parameter = found->second;
        HostTensor now(node.type.dtype, node.type.shape);
        session_.loaded.runnable->read(find_buffer(session_.loaded.program(), node.name), now.bytes());
        parameter.init = Init::values(std::move(now));
        moved_[id] = impl().parameter(node.name, node.type.shape, parameter);
        continue;
      }
      std::vector<NodeId> inputs;
      for (const NodeId input : node.inputs) inputs.push_back(moved_.at(input));
      if (node.op == Op::dropout) {
        moved_[id] = inputs[0];
        continue;
      }
      moved_[id] = builder().add(name_of(node.op), std::move(inputs), node.attrs.list());
      if (builder().find(node.name) == ir::kNoNode) builder().rename(moved_[id], node.name);
    }
    return moved_.at(wanted);
  }

  SessionAccess::Impl& session_;
  const GraphBuilder::Impl& old_;
  json::Document document_;
  json::Reader reader_{document_};
  data::FittedStatistics fit_;
  GraphBuilder graph_;
  std::optional<json::Ref> source_;  // object that names the training rows
  bool is_table_ = false;            // its columns have one value per row
  data::ColumnTransforms transforms_;
  std::map<std::string, data::Pipeline> of_inputs_;
  std::map<std::string, ColumnModel::Column> columns_;
  std::map<std::string, NodeId> values_;  // columns after their transforms
  std::map<NodeId, NodeId> moved_;        // nodes of the model, in the new graph
  std::set<std::string> done_;            // inputs that columns replace
};

}  // namespace

std::optional<ColumnModel> with_columns(SessionAccess::Impl& session) {
  const std::string text = session.loaded.model.canonical ? session.loaded.model.canonical() : "";
  return text.empty() ? std::nullopt : ColumnGraph(session, text).run();
}

}  // namespace graphrun
