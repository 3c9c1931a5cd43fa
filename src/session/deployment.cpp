// deployment.cpp: extracts the phase `predict` from a session: its steps, the values they read, and sample inputs.
#include "graphrun/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json_reader.h"
#include "base/philox.h"
#include "graphrun/error.h"
#include "session/batch_dependence.h"
#include "session/deployed_columns.h"
#include "session/session_access.h"

namespace graphrun {
namespace {

using Impl = SessionAccess::Impl;

// Sample values in the range of the training data: a normal distribution with a column's shift and scale as mean and
// std. Class numbers are below their count.
using Ranges = std::map<std::string, ColumnModel::Column>;

HostTensor example_of(const Impl& session, const std::string& name, const TensorType& type, std::int64_t samples,
                      const Ranges& ranges) {
  Shape shape = type.shape;
  shape[0] = samples * type.rows;
  HostTensor tensor(type.dtype, shape);
  std::vector<float> drawn(static_cast<std::size_t>(shape.elements()));
  fill_normal(Stream::named(1, "example/" + name), 0, 0, 1, drawn);
  std::int64_t classes = 2;
  for (const ClassRange& range : session.predictor.classes())
    if (range.input == name) classes = range.count;
  const Standardization* units = session.loaded.fitted_of(name);
  if (const auto range = ranges.find(name); range != ranges.end() && !range->second.units.scale.empty())
    units = &range->second.units;
  with_elements(tensor, [&](auto elements) {
    using T = typename decltype(elements)::value_type;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      double value = drawn[i];
      if (units != nullptr) {
        const std::size_t column = i % units->scale.size();
        value = invert_log(units->log, value * units->scale[column] + units->shift[column]);
      }
      if constexpr (std::is_floating_point_v<T>)
        elements[i] = static_cast<T>(value);
      else
        elements[i] = static_cast<T>(static_cast<std::int64_t>(std::abs(value) * 1000) % classes);
    }
  });
  return tensor;
}

HostTensor tensor_of(const Buffer& buffer, std::span<const std::byte> bytes) {
  HostTensor tensor(buffer.type.dtype, buffer.type.shape);
  if (tensor.bytes().size() != bytes.size()) throw std::logic_error("deployment: a state of another size");
  std::copy(bytes.begin(), bytes.end(), tensor.bytes().begin());
  return tensor;
}

std::optional<Standardization> units_of(const LoadedModel& loaded, std::string_view input) {
  const Standardization* found = loaded.fitted_of(input);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

// Adds the states that the phase reads: constants from the Program, all others with their current value.
void add_values(LoadedModel& loaded, Deployment& result) {
  std::set<BufferId> given{result.row_count};
  for (const DeployedValue& input : result.inputs) given.insert(input.buffer);
  std::set<BufferId> wanted;
  const auto want = [&](BufferId id) {
    const BufferId root = storage_root(result.program, id);
    if (is_state(result.program.buffers[root].kind) && !given.contains(root)) wanted.insert(root);
  };
  for (const Step& step : result.phase().steps)
    for (const BufferId id : step.inputs) want(id);
  for (const DeployedValue& output : result.outputs) want(output.buffer);
  for (const BufferId id : wanted) {
    const Buffer& buffer = result.program.buffers[id];
    if (buffer.kind == BufferKind::constant) {
      const auto initial = std::find_if(result.program.initial.begin(), result.program.initial.end(),
                                        [id = id](const InitialValue& one) { return one.buffer == id; });
      if (initial == result.program.initial.end()) throw std::logic_error("deployment: a constant without a value");
      result.values.emplace_back(id, tensor_of(buffer, initial->bytes));
      continue;
    }
    const BufferId own = find_buffer(loaded.program(), buffer.name);
    if (own == kNoBuffer) throw std::logic_error("deployment: no state " + buffer.name);
    std::vector<std::byte> bytes(loaded.program().buffers[own].type.bytes());
    loaded.runnable->read(own, bytes);
    result.values.emplace_back(id, tensor_of(buffer, bytes));
  }
}

std::vector<std::string> column_lines(const DataSet& data) {
  std::vector<std::string> lines;
  for (const FittedStatistic& one : data.fitted)
    lines.push_back(fmt::format("{} = {}", one.name, fmt::join(one.values, ", ")));
  if (data.provenance.empty()) return lines;
  const json::Document provenance = json::parse("origin", data.provenance);
  if (const json::Member* const categories = provenance.root.find("categories")) {
    for (const json::Member& column : categories->value.members) {
      std::vector<std::string> words;
      for (const json::Value& word : column.value.items) words.push_back(word.string);
      lines.push_back(fmt::format("{} = {}", column.key, fmt::join(words, ", ")));
    }
  }
  return lines;
}

void add_examples(Impl& session, const StepPhase& phase, std::int64_t samples, const Ranges& ranges,
                  Deployment& result) {
  std::vector<std::pair<std::string, HostTensor>> inputs;
  for (const auto& [name, node] : phase.inputs)
    inputs.emplace_back(name,
                        example_of(session, name, session.loaded.compiled.step.graph[node].type, samples, ranges));
  for (auto& [name, tensor] : session.predictor.predict(inputs, result.outputs.size()))
    result.example_outputs.push_back(std::move(tensor));
  for (auto& [name, tensor] : inputs) result.example_inputs.push_back(std::move(tensor));
}

Deployment deploy(Impl& session, const DeploymentOptions& options, const Ranges& ranges) {
  LoadedModel& loaded = session.loaded;
  const StepPhase& phase = session.predictor.predicting();
  PlanOptions plan = loaded.planned;
  plan.fuse = false;
  plan.views = options.views;
  plan.target.clear();
  const std::shared_ptr<Executor> ref = find_executor("ref");
  const CompiledModel compiled = compile_step(loaded.compiled.step, options.rows, loaded.model, {&ref, 1}, plan);
  Deployment result;
  result.model = loaded.model.name;
  result.program = compiled.program;
  result.row_count = compiled.buffer(phase.count);
  for (const auto& [name, node] : phase.inputs)
    result.inputs.push_back({name, compiled.buffer(node), units_of(loaded, name)});
  for (std::size_t i = 0; i < loaded.model.outputs.size(); ++i) {
    session.predictor.type_of_output(phase, i);
    const OutputSpec& output = loaded.model.outputs[i];
    result.outputs.push_back({output.name, compiled.buffer(phase.outputs[i]), units_of(loaded, output.target)});
  }
  result.columns = column_lines(loaded.model.data);
  add_values(loaded, result);
  add_examples(session, phase, options.examples, ranges, result);
  return result;
}

}  // namespace

Deployment deployment(Session& given, const DeploymentOptions& options) {
  Impl& session = SessionAccess::impl(given);
  session.predictor.predicting();
  if (const std::string coupled = batch_dependent_output(session.loaded.model); !coupled.empty()) {
    throw Error(ErrorKind::input, "export.coupled",
                fmt::format("the output '{}' depends on the rest of its batch", coupled),
                "an exported model predicts each row separately");
  }
  std::optional<ColumnModel> whole = with_columns(session);
  if (!whole) return deploy(session, options, {});
  SessionOptions on_ref;
  on_ref.executor = "ref";
  on_ref.fuse = false;
  Session of_columns(std::move(whole->model), on_ref);
  Deployment result = deploy(SessionAccess::impl(of_columns), options, whole->columns);
  for (std::vector<DeployedValue>* values : {&result.inputs, &result.outputs}) {
    for (DeployedValue& value : *values) {
      const auto found = whole->columns.find(value.name);
      if (found == whole->columns.end()) continue;
      value.name = found->second.name;
      value.column = found->second.doc;
    }
  }
  return result;
}

}  // namespace graphrun
