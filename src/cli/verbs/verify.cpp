// verify.cpp: the verb `verify`: compares two executors, or prints one value of a run.
#include "graphrun/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/command_line/open.h"
#include "cli/command_line/verbs.h"
#include "cli/terminal/output_files.h"
#include "cli/terminal/slow_operation.h"
#include "cli/terminal/terminal.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::int64_t kPrinted = 4096;  // maximum elements of a dump
constexpr std::size_t kGrowthRows = 24;  // maximum rows of a trajectory

// ---- comparing

// First steps, then increasingly sparse ones, and the last, to show growth over orders of magnitude.
std::vector<std::size_t> shown_rows(std::size_t rows) {
  std::vector<std::size_t> shown;
  if (rows == 0) return shown;
  const std::size_t stride_at = rows <= kGrowthRows ? rows : kGrowthRows / 2;
  for (std::size_t row = 0; row < rows; row += row < stride_at ? 1 : std::max<std::size_t>(1, row / 3)) {
    shown.push_back(row);
  }
  if (shown.back() != rows - 1) shown.push_back(rows - 1);
  return shown;
}

std::string growth_table(const VerifyReport& report) {
  std::string text = paint(stdout, Style::bold, fmt::format("{:>10}{:>14}  {}\n", "step", "difference", "parameter"));
  for (const std::size_t row : shown_rows(report.growth.size())) {
    const Divergence& at = report.growth[row];
    text += fmt::format("{:>10}{:>14.3g}  {}\n", grouped(at.step), at.difference, at.parameter);
  }
  return text;
}

std::string ops_table(const VerifyReport& report) {
  std::string text = paint(stdout, Style::bold,
                           fmt::format("{:<20}{:>8}{:>14}{:>12}  {}\n", "op", "steps", "values", "worst", "node"));
  for (const OpAgreement& op : report.ops) {
    text += fmt::format("{:<20}{:>8}{:>14}{:>12.2g}", op.op, grouped(op.steps), grouped(op.values), op.worst);
    text += op.node.empty() ? "\n" : fmt::format("  {}\n", op.node);
  }
  return text;
}

std::string steps_text(const VerifyReport& report) {
  const std::pair<std::uint64_t, std::string_view> counts[] = {
      {report.training_steps, "training"}, {report.evaluation_steps, "evaluation"}, {report.predictions, "prediction"}};
  std::vector<std::string> parts;
  for (const auto& [n, phase] : counts) {
    if (n > 0) parts.push_back(fmt::format("{} step{} of {}", grouped(n), n == 1 ? "" : "s", phase));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string as_text(const VerifyReport& report, const Arguments& arguments) {
  std::string text;
  if (arguments.verify.trajectory && !report.growth.empty()) text += growth_table(report);
  if (arguments.verbose && !report.ops.empty()) text += ops_table(report);
  for (const std::string& fallback : report.fallbacks) text += fallback + "\n";
  if (report.difference) {
    return text + paint(stdout, Style::bold, "not verified:") + " " + to_string(*report.difference);
  }
  text += fmt::format("verified: {} values in {}", grouped(report.values), steps_text(report));
  if (report.on_device) text += fmt::format(", {} math", name_of(report.math));
  if (arguments.verify.trajectory) {
    const auto worst =
        std::max_element(report.growth.begin(), report.growth.end(),
                         [](const Divergence& a, const Divergence& b) { return a.difference < b.difference; });
    if (worst->difference <= 0) return text + ", parameters equal\n";
    return text + fmt::format(", parameters at most {:.3g} apart ({} after step {})\n", worst->difference,
                              worst->parameter, grouped(worst->step));
  }
  if (report.ops.empty() || report.ops.front().worst <= 0) {
    text += ", all equal\n";
  } else {
    const OpAgreement& worst = report.ops.front();
    text += fmt::format(", worst {:.2g} of the tolerance ({})\n", worst.worst, worst.node);
  }
  return text +
         fmt::format("as it runs: {} values with {} region{}; many steps in one call give bitwise identical results\n",
                     grouped(report.fused_values), grouped(report.regions), report.regions == 1 ? "" : "s");
}

JsonWriter& write_difference(JsonWriter& json, const Difference& difference) {
  static constexpr std::string_view kinds[] = {"value", "outside", "start", "parameter", "fused", "repeat", "loss"};
  json.begin_object().member("kind", kinds[static_cast<std::size_t>(difference.kind)]);
  json.member("phase", difference.phase).member("step", difference.phase_step).member("program_step", difference.step);
  json.member("op", difference.op).member("node", difference.node).member("buffer", difference.buffer);
  json.member("index", difference.index).member("got", difference.got).member("expected", difference.expected);
  return json.member("tolerance", difference.tolerance).member("text", to_string(difference)).end_object();
}

std::string as_json(const VerifyReport& report, const Model& model) {
  JsonWriter json;
  json.begin_object()
      .member("model", model.name)
      .member("executor", report.executor)
      .member("math", name_of(report.math));
  json.member("against", report.against).member("passed", report.passed());
  json.member("steps", report.training_steps).member("evaluation_steps", report.evaluation_steps);
  json.member("predictions", report.predictions).member("values", report.values);
  json.member("regions", report.regions).member("fused_values", report.fused_values);
  json.member("fallbacks", report.fallbacks);
  json.objects("ops", report.ops, [&](const OpAgreement& op) {
    json.member("op", op.op).member("steps", op.steps).member("values", op.values);
    json.member("worst", op.worst).member("node", op.node);
  });
  json.objects("growth", report.growth, [&](const Divergence& at) {
    json.member("step", at.step).member("parameter", at.parameter).member("difference", at.difference);
  });
  json.key("difference");
  report.difference ? write_difference(json, *report.difference) : json.null();
  return json.end_object().text() + "\n";
}

int compare(const Model& model, const Arguments& arguments) {
  VerifyOptions options{arguments.session};
  options.against = arguments.verify.against;
  options.steps = arguments.steps.value_or(options.steps);
  options.trajectory = arguments.verify.trajectory;
  options.tolerance = arguments.verify.tolerance;
  const VerifyReport report = verify(model, options);
  write_results(arguments.json ? as_json(report, model) : as_text(report, arguments));
  return report.passed() ? kDone : kCheckFailed;
}

// ---- dumping

std::string dump_text(const std::string& name, const HostTensor& tensor) {
  std::string text = fmt::format("{} {}{}\n", name, name_of(tensor.dtype()), to_string(tensor.shape()));
  const int rank = tensor.shape().rank();
  const std::size_t columns = rank == 0 ? 1 : static_cast<std::size_t>(tensor.shape()[rank - 1]);
  with_elements(tensor, [&](const auto elements) {
    std::size_t width = 0;
    for (const auto x : elements) width = std::max(width, fmt::formatted_size("{}", unsigned_nan(x)));
    for (std::size_t i = 0; i < elements.size(); ++i)
      text += fmt::format("{:>{}}{}", unsigned_nan(elements[i]), width, (i + 1) % columns == 0 ? "\n" : "  ");
  });
  return text;
}

std::string dump_json(const std::string& name, const HostTensor& tensor) {
  JsonWriter json;
  json.begin_object().member("name", name).member("dtype", name_of(tensor.dtype()));
  json.member("shape", tensor.shape().dims()).key("values");
  with_elements(tensor, [&](const auto elements) { json.value(elements); });
  return json.end_object().text() + "\n";
}

int dump(const Model& model, const Arguments& arguments, std::optional<OutputFile>& file) {
  ValueOptions options{arguments.session};
  options.steps = arguments.steps.value_or(options.steps);
  const HostTensor tensor = value_after(model, arguments.verify.dump, options);
  if (file) {
    save_npy(tensor, *file);
    return kDone;
  }
  if (!arguments.json && tensor.shape().elements() > kPrinted) {
    throw Error(ErrorKind::input, "dump.large",
                fmt::format("'{}' has {} elements, more than anyone reads", arguments.verify.dump,
                            grouped(static_cast<std::uint64_t>(tensor.shape().elements()))),
                "--dump-to=FILE.npy writes them to a file");
  }
  write_results(arguments.json ? dump_json(arguments.verify.dump, tensor) : dump_text(arguments.verify.dump, tensor));
  return kDone;
}

int run_verify(const Arguments& arguments, Diagnostics& diagnostics) {
  OutputFiles outputs(arguments);
  const Model model = read_model(arguments, diagnostics);
  outputs.reject_read(model);
  const SlowOperationNotice notice(diagnostics, arguments.verify.dump.empty() ? "verifying" : "running the steps");
  return arguments.verify.dump.empty() ? compare(model, arguments) : dump(model, arguments, outputs.dump);
}

}  // namespace

const Verb verify_verb = {
    "verify",
    "",
    Positionals::model,
    "compare two executors step by step and value by value",
    R"(First, verify checks each plan step alone: both executors get the same inputs, and every value must agree
within the op's tolerance. Then it compares whole runs that start from equal states: the program with its
fused regions, each phase in one call, and predictions of full and partial batches. It also checks that many
training steps in one call give the same bits as single steps. If values differ, verify prints the training
step, the op and the element, and exits with code 3. It also fails if the training loss is NaN or infinite,
because equal values then verify nothing. --dump prints one value instead.)",
    R"(graphrun verify model.json --executor=cuda
graphrun verify model.json --steps=10 -v
graphrun verify model.json --trajectory --steps=500 --tolerance=1e-4
graphrun verify model.json --dump=loss --steps=3)",
    run_verify};

}  // namespace graphrun::cli
