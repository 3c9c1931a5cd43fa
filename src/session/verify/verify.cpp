// verify.cpp: order of the verification parts, and description of differences.
#include "graphrun/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/error.h"
#include "graphrun/target.h"
#include "session/compiling/jit.h"
#include "session/verify/verify_parts.h"

namespace graphrun {

Bytes read_bytes(Runnable& runnable, const Program& program, BufferId id) {
  Bytes bytes;
  read_bytes(runnable, program, id, bytes);
  return bytes;
}

void read_bytes(Runnable& runnable, const Program& program, BufferId id, Bytes& into) {
  const Buffer& buffer = program.buffers[id];
  into.resize(buffer.layout == Layout::rows ? buffer.bytes : buffer.type.bytes());
  runnable.read(id, into);
}

void make_absolute(DType dtype, std::span<std::byte> bytes) {
  if (!is_float(dtype)) return;
  // On all supported machines the sign is the highest bit of the last byte of a float.
  const std::size_t width = size_of(dtype);
  in_parts(bytes.size() / width, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) bytes[(i + 1) * width - 1] &= std::byte{0x7f};
  });
}

Difference describe(const Verification& verification, Difference::Kind kind, const Phase& phase, std::uint64_t at,
                    const Buffer& buffer, const Sides& sides, std::size_t i, std::optional<std::uint32_t> step) {
  Difference difference;
  difference.kind = kind;
  difference.executor = verification.report.executor;
  difference.against = verification.report.against;
  difference.phase = phase.name;
  difference.phase_step = at;
  difference.steps = phase.steps.size();
  difference.buffer = buffer.name;
  difference.index = index_of(sides.type.shape, i);
  difference.got = element_text(sides.type.dtype, sides.got, i);
  difference.expected = element_text(sides.type.dtype, sides.expected, i);
  difference.tolerance = sides.tolerance(i);
  std::pair<std::string, std::string> names = {difference.executor, difference.against};
  if (kind == Difference::Kind::outside) names = {"after", "before"};
  if (kind == Difference::Kind::repeat) names = {"at once", "one by one"};
  difference.neighbourhood = neighbourhood(sides, i, names.first, names.second);
  if (step) {
    difference.step = *step + 1;
    difference.op = name_of(phase.steps[*step].op);
    difference.node = phase.steps[*step].name;
  }
  return difference;
}

Difference describe_change(const Verification& verification, Difference::Kind kind, const Phase& phase,
                           std::uint64_t at, const Buffer& buffer, const Bytes& got, const Bytes& expected,
                           std::optional<std::uint32_t> step) {
  const auto byte = std::mismatch(got.begin(), got.end(), expected.begin()).first - got.begin();
  return describe(verification, kind, phase, at, buffer, {buffer.type, got, expected, Agreement::exact},
                  static_cast<std::size_t>(byte) / size_of(buffer.type.dtype), step);
}

std::vector<PhaseRun> phase_runs(const Verification& verification, std::size_t phase, std::uint64_t steps,
                                 bool always_last) {
  const StepPhase& of = verification.compiled.step.phases[phase];
  std::vector<PhaseRun> runs;
  if (!of.outputs.empty()) {
    const std::int64_t capacity = verification.program().phases[phase].capacity;
    if (!prediction_inputs(verification, verification.compiled, phase, capacity).empty())
      runs = {{0, 1, false, capacity}};
    if (!runs.empty() && capacity > 1) runs.push_back({0, 1, false, (capacity + 1) / 2});
    return runs;
  }
  runs.push_back({0, steps});
  const auto batches = static_cast<std::uint64_t>(of.batches.count());
  if (steps < batches && (always_last || !of.batches.all_full())) runs.push_back({batches - 1, 1, true});
  return runs;
}

void set_counter(Runnable& runnable, const CompiledModel& compiled, std::size_t phase, std::uint64_t at) {
  runnable.write(compiled.buffer(compiled.step.phases[phase].counter), std::as_bytes(std::span(&at, 1)));
}

InputBytes prediction_inputs(const Verification& verification, const CompiledModel& compiled, std::size_t phase,
                             std::int64_t count) {
  const StepPhase& predict = compiled.step.phases[phase];
  const auto column_of = [](const Split& split, const std::string& input) -> const HostTensor* {
    for (const auto& [name, tensor] : split.columns) {
      if (name == input && split.samples() > 0) return &tensor;
    }
    return nullptr;
  };
  for (const Split& split : verification.model.data.splits) {
    const bool has_all = std::all_of(predict.inputs.begin(), predict.inputs.end(),
                                     [&](const auto& input) { return column_of(split, input.first) != nullptr; });
    if (!has_all) continue;
    InputBytes result;
    for (const auto& [name, node] : predict.inputs) {
      const BufferId id = compiled.buffer(node);
      const HostTensor& column = *column_of(split, name);
      const auto samples = static_cast<std::size_t>(split.samples());
      const std::size_t row = column.bytes().size() / samples;
      Bytes bytes(compiled.program.buffers[id].type.bytes());  // rows past the count are zero
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        const auto from = column.bytes().subspan(i % samples * row, row);
        std::copy(from.begin(), from.end(), bytes.begin() + static_cast<std::ptrdiff_t>(i * row));
      }
      result.emplace_back(id, std::move(bytes));
    }
    const auto rows = static_cast<std::int32_t>(count);
    const auto as_bytes = std::as_bytes(std::span(&rows, 1));
    result.emplace_back(compiled.buffer(predict.count), Bytes(as_bytes.begin(), as_bytes.end()));
    return result;
  }
  return {};
}

std::string to_string(const Difference& d) {
  const std::string place = d.index.empty() ? d.buffer : fmt::format("{}[{}]", d.buffer, fmt::join(d.index, ", "));
  const std::string step = d.step == 0 ? "some step" : fmt::format("{} ({}, {} of {})", d.node, d.op, d.step, d.steps);
  const std::string both =
      fmt::format("  {} is {} on {} and {} on {}", place, d.got, d.executor, d.expected, d.against);
  const std::string bound = fmt::format(", the tolerance is {:.3g}\n", d.tolerance);
  std::string text = fmt::format("{}, step {}: ", d.phase, d.phase_step);
  switch (d.kind) {
    case Difference::Kind::value:
      text += step + " differs\n" + both + bound;
      break;
    case Difference::Kind::outside:
      text += fmt::format("{} writes outside its output on {}\n  {} was {} and became {}\n", step, d.executor, place,
                          d.expected, d.got);
      break;
    case Difference::Kind::start:
      text = d.buffer + " is not the same before the first step\n" + both + "\n";
      break;
    case Difference::Kind::fused:
      text += d.step == 0 ? d.buffer + " differs after the whole phase, as a Session runs it\n"
                          : step + " differs where it runs in a region, or after one\n";
      text += both + bound;
      break;
    case Difference::Kind::repeat:
      text += fmt::format(
          "many steps in one run leave another {} than the same steps one by one, on {}\n  {} is {}, one by one {}\n",
          d.buffer, d.executor, place, d.got, d.expected);
      break;
    case Difference::Kind::loss:
      text +=
          fmt::format("{} is {} on {} and on {}: equal values verify nothing\n", place, d.got, d.executor, d.against);
      break;
    case Difference::Kind::parameter:
      text += "the parameter " + d.buffer + " went astray\n" + both;
      text += d.tolerance > 0 ? fmt::format(", more than {:.3g} of the largest element apart\n", d.tolerance) : "\n";
      break;
  }
  return text + d.neighbourhood;
}

VerifyReport verify(const Model& model, const VerifyOptions& options) {
  if (options.steps == 0) throw Error(ErrorKind::input, "verify.steps", "verify needs at least one step");
  if (options.tolerance && !(*options.tolerance >= 0)) {  // includes NaN
    throw Error(ErrorKind::input, "verify.tolerance",
                fmt::format("the tolerance must be a number >= 0, got {}", *options.tolerance));
  }
  const auto nothing_to_do = [](std::string_view why) {
    throw Error(ErrorKind::input, "verify.nothing", fmt::format("there is nothing to verify: the model has {}", why));
  };
  Verification verification{model, options, {}, {}, {}, {}};
  verification.executors = {choose_executor(options.executor, options.custom_executor, options.threads),
                            choose_executor(options.against, options.custom_against, options.threads)};
  verification.compiled = compile_model(model, verification.executors, plain_steps(options));
  verification.whole = compile_model(model, {verification.executors.data(), 1}, plan_options(options));
  VerifyReport& report = verification.report;
  report.fallbacks = verification.compiled.fallbacks;
  report.executor = verification.executors[0]->name();
  report.on_device = find_target(verification.compiled.program.target).compute_capability > 0;
  report.math = verification.compiled.program.math;
  report.against = verification.executors[1]->name();
  if (report.executor == report.against) report.against += " (reference)";
  // Runs the parts that execute like a Session; if its kernels do not load, falls back as a Session does.
  const auto as_a_session = [&](void (*part)(Verification&)) {
    try {
      return part(verification);
    } catch (const Error& error) {
      std::optional<CompiledModel> again =
          without_step_kernels(error, verification.whole, model, verification.executors[0], plan_options(options));
      if (!again) throw;
      report.fallbacks.push_back(again->fallbacks.back());
      verification.whole = std::move(*again);
    }
    part(verification);
  };
  if (options.trajectory) {
    const std::vector<StepPhase>& phases = verification.compiled.step.phases;
    if (phases.empty() || phases[0].name != "train") nothing_to_do("no training");
    as_a_session(verify_trajectory);
    return std::move(report);
  }
  verify_steps(verification);
  if (report.passed() && report.training_steps + report.evaluation_steps + report.predictions == 0)
    nothing_to_do("nothing to train, to evaluate or to predict");
  if (report.passed()) as_a_session(verify_runs);
  return std::move(report);
}

}  // namespace graphrun
