#include "cli/results/show_arrays.h"

#include <algorithm>

#include "cli/command_line/open.h"
#include "cli/command_line/verbs.h"
#include "cli/results/array_text.h"
#include "cli/terminal/output_files.h"
#include "cli/terminal/slow_operation.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/inspection.h"
#include "graphrun/weights.h"

namespace graphrun::cli {
namespace {

constexpr std::string_view kGradient = ":gradient";

std::string_view kind_name(Inspection::Kind kind) {
  static constexpr std::string_view kNames[] = {"input", "parameter", "value", "gradient"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Named entries, in the order of `names`; all if there are no names.
template <class Entry, class Reject>
std::vector<Entry> chosen(const std::vector<Entry>& entries, const std::vector<std::string>& names, Reject reject) {
  if (names.empty()) return entries;
  std::vector<Entry> wanted;
  for (const std::string& name : names) {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& one) { return one.name == name; });
    if (found == entries.end()) reject(name);  // suggests the nearest name
    wanted.push_back(*found);
  }
  return wanted;
}

NamedArray array_of(const Inspection& inspection, const Inspection::NamedValue& entry) {
  return {entry.name, std::string(name_of(entry.type.dtype)), entry.type.shape,
          [&inspection, name = entry.name] { return inspection.read(name); }};
}

std::string as_json(const Inspection& inspection, const std::vector<Inspection::NamedValue>& entries,
                    const Arguments& arguments, const std::string& model) {
  JsonWriter json;
  json.begin_object().member("model", model).member("executor", arguments.session.executor);
  json.member("weights", arguments.load.weights).member("split", inspection.split()).member("rows", inspection.rows());
  json.member("of", inspection.of());
  json.objects("arrays", entries, [&](const Inspection::NamedValue& entry) {
    json.member("kind", kind_name(entry.kind));
    write_array(json, array_of(inspection, entry), !arguments.names.empty());
  });
  return json.end_object().text() + "\n";
}

std::string as_text(const Inspection& inspection, const std::vector<Inspection::NamedValue>& entries,
                    const Arguments& arguments, const std::string& model) {
  std::vector<NamedArray> values, gradients;
  for (const Inspection::NamedValue& entry : entries)
    (entry.kind == Inspection::Kind::gradient ? gradients : values).push_back(array_of(inspection, entry));
  const std::string rows = grouped(static_cast<std::uint64_t>(inspection.rows()));
  std::string text = fmt::format(
      "{} on {}, the first {} row{} of {}, {}\n", printable(model), arguments.session.executor, rows,
      inspection.rows() == 1 ? "" : "s", inspection.split(),
      arguments.load.weights.empty() && !is_weights(arguments.model, arguments.load)
          ? "initial weights"
          : "weights of " + printable(arguments.load.weights.empty() ? arguments.model : arguments.load.weights));
  const bool detailed = !arguments.names.empty();
  if (!values.empty()) text += "\n" + arrays_text("value", values, detailed);
  if (!gradients.empty())
    text +=
        fmt::format("\ngradients of {}\n", printable(inspection.of())) + arrays_text("gradient", gradients, detailed);
  return text;
}

}  // namespace

int show_arrays(const Arguments& arguments) {
  OutputFiles outputs(arguments);
  const WeightsFile file(arguments.load.weights);
  const auto read = [&](const std::string& name) { return file.read(name); };
  std::vector<NamedArray> arrays;
  for (const WeightsFile::ArrayInfo& entry : chosen(file.entries(), arguments.names, read))
    arrays.push_back({entry.name, entry.dtype, entry.shape, [read, name = entry.name] { return read(name); }});
  if (outputs.array) {
    save_array(*outputs.array, arrays.front().read());
    return kDone;
  }
  const bool named = !arguments.names.empty();
  JsonWriter json;
  json.begin_object().member("file", arguments.load.weights);
  if (arguments.json) json.objects("arrays", arrays, [&](const NamedArray& array) { write_array(json, array, named); });
  write_results(arguments.json ? json.end_object().text() + "\n" : arrays_text("array", arrays, named));
  return kDone;
}

int show_values(const Arguments& arguments, Diagnostics& diagnostics) {
  InspectionOptions options{arguments.session};
  options.split = arguments.split;
  options.of = arguments.show.of;
  options.gradients = arguments.show.gradients || !arguments.show.of.empty() ||
                      std::any_of(arguments.names.begin(), arguments.names.end(),
                                  [](const std::string& name) { return name.ends_with(kGradient); });
  OutputFiles outputs(arguments);
  Model model = read_model(arguments, diagnostics);
  outputs.reject_read(model);
  const std::string name = model.name;
  const Inspection inspection = [&] {
    const SlowOperationNotice notice(diagnostics, "running a batch");
    return Inspection(std::move(model), options);
  }();
  const std::vector<Inspection::NamedValue> entries =
      chosen(inspection.entries(), arguments.names, [&](const std::string& wanted) { (void)inspection.read(wanted); });
  if (outputs.array) {
    save_array(*outputs.array, inspection.read(arguments.names.front()));
    return kDone;
  }
  write_results(arguments.json ? as_json(inspection, entries, arguments, name)
                               : as_text(inspection, entries, arguments, name));
  return kDone;
}

}  // namespace graphrun::cli
