// predict.cpp: the verb `predict`: outputs of a trained model for the rows of a file, as CSV on stdout. With several
// weights files, the mean and the sample standard deviation of their outputs: sums in double, in the order of the
// files.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/json_text.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/command_line/open.h"
#include "cli/command_line/verbs.h"
#include "cli/results/forecast.h"
#include "cli/stored_runs/comparison.h"
#include "cli/terminal/csv_cell.h"
#include "cli/terminal/result_file.h"
#include "graphrun/class_outputs.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

// Values of one output in model units, their conversion to the target's units, and their classes.
struct Output {
  std::string name, target;
  HostTensor values;
  std::optional<Standardization> units;
  ClassOutput classes;
  bool says_label = false;
  std::vector<std::vector<std::string>> labels = {};  // per row, if says_label: its class, or its labels
  bool is_probability = false;                        // converted from logits
  std::vector<Output> others = {};                    // the same output of the other weights files
};
using Outputs = std::vector<Output>;

// Units of the outputs' targets, taken from the model: f32 lacks the precision if the standard deviation is small
// compared with the mean, as in timestamps.
std::vector<std::optional<Standardization>> take_units(Model& model) {
  std::vector<std::optional<Standardization>> units;
  std::vector<Standardization>& all = model.data.standardizations;
  const auto is_of = [](const std::string& input) {
    return [&](const Standardization& s) { return s.input == input; };
  };
  for (const OutputSpec& output : model.outputs) {
    const auto found = std::find_if(all.begin(), all.end(), is_of(output.target));
    units.push_back(found == all.end() ? std::nullopt : std::optional(*found));
  }
  for (const OutputSpec& output : model.outputs) std::erase_if(all, is_of(output.target));
  return units;
}

// Calls f with the number in original units: as f32 if the spacing of f32 values is at most a millionth of the
// standard deviation there.
template <class F>
void in_units(double value, double shift, double scale, LogTransform log, F f) {
  const double original = invert_log(log, value * scale + shift);
  const auto narrow = static_cast<float>(original);
  const float next = std::nextafter(std::abs(narrow), std::numeric_limits<float>::infinity());
  const double std_dev = log == LogTransform::none ? std::abs(scale) : std::abs(scale * original);
  if (static_cast<double>(next - std::abs(narrow)) <= std_dev * 0x1p-20)
    f(narrow);
  else
    f(original);
}

// Elements of one row.
std::size_t width_of(const HostTensor& tensor) {
  const std::int64_t rows = tensor.shape()[0];
  return rows == 0 ? 0 : static_cast<std::size_t>(tensor.shape().elements() / rows);
}

// Renames converted logits to "probability" unless another output has that name.
std::string number_name(const Output& output, const Outputs& all) {
  const auto is_taken = [](const Output& other) { return other.name == "probability" || other.is_probability; };
  return output.is_probability && std::count_if(all.begin(), all.end(), is_taken) == 1 ? "probability" : output.name;
}

// Makes a name unique: "y" next to a kept column "y" becomes "y.predicted".
std::string distinct(std::string name, std::unordered_set<std::string>& taken) {
  if (taken.contains(name)) name += ".predicted";
  const std::string stem = name;
  for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}.{}", stem, i);
  return name;
}

// With windows, the row that they predict. Kept columns, then labels, then numbers. An output with several elements per
// row has one column per element: "logits.0", or "logits.setosa" with named classes.
std::vector<std::string> columns_of(const Outputs& outputs, const std::vector<std::string>& keep) {
  std::vector<std::string> names = keep;
  for (const Output& output : outputs) {
    if (output.says_label) names.push_back(output.target);
  }
  for (const Output& output : outputs) {
    const std::size_t width = width_of(output.values);
    for (std::size_t i = 0; i < width; ++i) {
      names.push_back(width == 1 ? number_name(output, outputs)
                                 : fmt::format("{}.{}", number_name(output, outputs), output.classes.label(i)));
      if (!output.others.empty()) names.push_back(names.back() + ".std");
    }
  }
  std::unordered_set<std::string> taken;
  for (std::string& name : names) name = distinct(std::move(name), taken);
  return names;
}

std::vector<std::string> labels_of(const ClassOutput& classes, std::span<const float> row) {
  if (!classes.is_multi_label) return {classes.label(classes.class_of(row))};
  std::vector<std::string> labels;
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (classes.predicts(row, k)) labels.push_back(classes.label(k));
  }
  return labels;
}

// Classes of several networks, by their mean probabilities and mean thresholds.
std::vector<std::vector<std::string>> labels_of_mean(Output& output) {
  std::vector<std::span<const float>> all = {output.values.elements<float>()};
  ClassOutput classes = output.classes;
  classes.numbers = ClassOutput::Numbers::plain;
  const std::size_t chosen = classes.thresholds.size();
  for (Output& other : output.others) {
    all.push_back(other.values.elements<float>());
    if (other.classes.thresholds.size() != chosen) classes.thresholds.clear();
    for (std::size_t k = 0; k < classes.thresholds.size(); ++k) classes.thresholds[k] += other.classes.thresholds[k];
  }
  for (double& threshold : classes.thresholds) threshold /= static_cast<double>(all.size());
  std::vector<std::vector<std::string>> labels;
  std::vector<double> probabilities(width_of(output.values));
  for (std::size_t at = 0; at < all[0].size(); at += probabilities.size()) {
    std::vector<double> sum(probabilities.size());
    for (const std::span<const float> one : all) {
      output.classes.probabilities(one.subspan(at, sum.size()), probabilities);
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += probabilities[k];
    }
    std::vector<float> mean;
    for (const double p : sum) mean.push_back(static_cast<float>(p / static_cast<double>(all.size())));
    labels.push_back(labels_of(classes, mean));
  }
  return labels;
}

// Calls f(number) for the elements of one row of one output.
template <class F>
void each_number_of_one(const Output& output, std::size_t row, F f) {
  const HostTensor& tensor = output.values;
  with_elements(tensor, [&](const auto elements) {
    const std::size_t width = width_of(tensor);
    for (std::size_t i = 0; i < width; ++i) {
      const auto x = elements[row * width + i];
      if (!output.units) {
        f(x);
        continue;
      }
      const std::size_t column = i % output.units->scale.size();
      if (tensor.dtype() == DType::f64) {
        f(invert_log(output.units->log,
                     static_cast<double>(x) * output.units->scale[column] + output.units->shift[column]));
        continue;
      }
      in_units(static_cast<double>(x), output.units->shift[column], output.units->scale[column], output.units->log, f);
    }
  });
}

// The same for an output of several networks: f(mean), then f(std) for each element.
template <class F>
void each_number(const Output& output, std::size_t row, F f) {
  if (output.others.empty()) return each_number_of_one(output, row, f);
  std::vector<std::vector<double>> values(width_of(output.values));
  bool is_narrow = true;  // all in f32: so is their mean
  const auto add = [&](const Output& one) {
    std::size_t i = 0;
    each_number_of_one(one, row, [&](auto x) {
      values[i++].push_back(static_cast<double>(x));
      is_narrow = is_narrow && sizeof x <= sizeof(float);
    });
  };
  add(output);
  for (const Output& other : output.others) add(other);
  for (const std::vector<double>& of_networks : values) {
    for (const double number : {mean_of(of_networks), std_dev_of(of_networks)})
      is_narrow ? f(static_cast<float>(number)) : f(number);
  }
}

// A network that predicts: a weights file of the model.
struct Network {
  Session session;
  std::vector<std::optional<Standardization>> units;
  std::vector<ClassOutput> classes;
};

class Predictions {
 public:
  Predictions(std::vector<Network> networks, const Arguments& arguments)
      : arguments_(arguments), networks_(std::move(networks)) {
    const std::vector<ClassOutput>& classes = networks_.front().classes;
    const bool any = std::any_of(classes.begin(), classes.end(), [](const ClassOutput& one) { return one.is_class; });
    if (!any && (arguments.labels || arguments.probabilities)) {
      throw Error(ErrorKind::input, "predict.classes",
                  fmt::format("{}: no output of the model has a categorical target",
                              arguments.labels ? "--labels" : "--probabilities"),
                  "a target is categorical if its values are text, or if a cross-entropy compares it");
    }
  }

  Outputs of(const InputRows& rows) {
    rows_ += rows.rows();
    for (const auto& [column, count] : rows.far) far_[column] += count;
    Outputs outputs = outputs_of(networks_.front(), rows);
    for (Network& network : std::span(networks_).subspan(1)) {
      Outputs others = outputs_of(network, rows);
      for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].others.push_back(std::move(others[i]));
    }
    for (Output& output : outputs) {
      if (output.says_label && output.others.empty())
        each_row(output, [&](std::span<float> row) { output.labels.push_back(labels_of(output.classes, row)); });
      else if (output.says_label)
        output.labels = labels_of_mean(output);
      if (!output.is_probability) continue;
      each_row(output, [&](std::span<float> row) { output.classes.to_probabilities(row); });
      for (Output& other : output.others)
        each_row(other, [&](std::span<float> row) { other.classes.to_probabilities(row); });
    }
    return outputs;
  }

  const Session& session() const { return networks_.front().session; }
  // Names of the columns before those of the outputs.
  std::vector<std::string> names(const InputRows& rows) const {
    std::vector<std::string> all = arguments_.keep;
    if (rows.window_length > 0) all.insert(all.begin(), "row");
    return all;
  }

  void warn(Diagnostics& diagnostics) const {
    for (const auto& [column, count] : far_)
      diagnostics.warn(
          fmt::format("'{}' is far outside the training rows in {} of {} rows; do not rely on predictions "
                      "for them",
                      column, count, rows_));
  }

 private:
  Outputs outputs_of(Network& network, const InputRows& rows) const {
    Outputs outputs;
    for (auto& [name, values] : network.session.predict_all(rows.inputs)) {
      const std::size_t i = outputs.size();
      const ClassOutput& classes = network.classes[i];
      const bool names_class = !classes.words.empty() && !classes.is_multi_label;
      const bool says_label = classes.is_class && (arguments_.labels || names_class);
      outputs.push_back(
          {name, network.session.model().outputs[i].target, std::move(values), network.units[i], classes, says_label});
      Output& output = outputs.back();
      output.is_probability =
          arguments_.probabilities && classes.is_class && classes.numbers != ClassOutput::Numbers::plain;
      if ((says_label || output.is_probability) && output.values.dtype() == DType::f64)  // classes are read from f32
        output.values = from_doubles(as_doubles(output.values), {DType::f32, output.values.shape(), 0});
    }
    return outputs;
  }

  template <class F>
  static void each_row(Output& output, F f) {
    const std::size_t width = width_of(output.values);
    const std::span<float> numbers = output.values.elements<float>();
    for (std::size_t at = 0; width > 0 && at < numbers.size(); at += width) f(numbers.subspan(at, width));
  }

  std::map<std::string, std::int64_t> far_;  // rows, keyed by column
  std::int64_t rows_ = 0;
  const Arguments& arguments_;
  std::vector<Network> networks_;
};

// Input rows are converted once, so all networks must have the statistics of columns and the classes of the first.
std::vector<Network> networks_of(const Arguments& arguments, LoadOptions load, Diagnostics& diagnostics) {
  std::vector<Network> networks;
  std::vector<std::string> files = {arguments.load.weights};
  files.insert(files.end(), arguments.more_weights.begin(), arguments.more_weights.end());
  for (const std::string& file : files) {
    load.weights = file;
    Model model = read_model(arguments, load, diagnostics);
    std::vector<std::optional<Standardization>> units = take_units(model);
    Session session = open_session(std::move(model), arguments, diagnostics);
    std::vector<ClassOutput> classes = class_outputs(session.model());
    networks.push_back({std::move(session), std::move(units), std::move(classes)});
    const auto same = [](const FittedStatistic& a, const FittedStatistic& b) {
      return a.name == b.name && a.values == b.values;
    };
    const Network &first = networks.front(), &own = networks.back();
    if (!std::ranges::equal(own.session.model().data.fitted, first.session.model().data.fitted, same) ||
        !std::ranges::equal(own.classes, first.classes, {}, &ClassOutput::words, &ClassOutput::words))
      throw Error(ErrorKind::input, "predict.weights",
                  fmt::format("'{}' and '{}' have different statistics of the training rows", files.front(), file),
                  "train them with the same split, as train --ensemble does");
  }
  return networks;
}

std::string as_csv(const Outputs& outputs, const InputRows& rows) {
  std::string text;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows.rows()); ++row) {
    bool is_first = true;
    const auto add_cell = [&](const std::string& cell) {
      if (!is_first) text += ',';
      is_first = false;
      text += cell;
    };
    if (rows.window_length > 0) add_cell(fmt::format("{}", rows.target_row + static_cast<std::int64_t>(row)));
    for (const std::vector<std::string>& column : rows.kept) add_cell(csv_cell(column[row]));
    for (const Output& output : outputs)
      if (output.says_label) add_cell(csv_cell(fmt::format("{}", fmt::join(output.labels[row], ";"))));
    for (const Output& output : outputs)
      each_number(output, row, [&](auto x) { add_cell(fmt::format("{}", unsigned_nan(x))); });
    text += '\n';
  }
  return text;
}

void add_rows(JsonWriter& json, const Outputs& outputs, const InputRows& rows) {
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows.rows()); ++row) {
    json.begin_array();
    if (rows.window_length > 0) json.value(rows.target_row + static_cast<std::int64_t>(row));
    for (const std::vector<std::string>& column : rows.kept) json.value(column[row]);
    for (const Output& output : outputs) {
      if (!output.says_label) continue;
      output.classes.is_multi_label ? json.value(output.labels[row]) : json.value(output.labels[row].front());
    }
    for (const Output& output : outputs) each_number(output, row, [&](auto x) { json.value(x); });
    json.end_array();
  }
}

// Streams the rows: answers those of a pipe before waiting for more.
void print_csv(InputReader& reader, InputRows rows, Predictions& predictions, ResultFile& to) {
  bool has_header = false;
  for (std::optional<InputRows> next = std::move(rows); next; next = reader.next()) {
    const Outputs outputs = predictions.of(*next);
    std::string text;
    if (!has_header) {
      std::vector<std::string> names = columns_of(outputs, predictions.names(*next));
      for (std::string& name : names) name = csv_cell(name);
      text = fmt::format("{}\n", fmt::join(names, ","));
    }
    has_header = true;
    to.append(text + as_csv(outputs, *next));
  }
}

void print_json(InputReader& reader, InputRows rows, Predictions& predictions, ResultFile& to) {
  const Session& session = predictions.session();
  JsonWriter json, lines;
  std::int64_t count = 0;
  std::vector<std::string> names;
  lines.begin_array();
  for (std::optional<InputRows> next = std::move(rows); next; next = reader.next()) {
    const Outputs outputs = predictions.of(*next);
    if (count == 0) names = columns_of(outputs, predictions.names(*next));
    count += next->rows();
    add_rows(lines, outputs, *next);
  }
  lines.end_array();
  json.begin_object().member("model", session.model().name).member("executor", session.executor());
  json.member("math", name_of(session.program().math));
  json.member("rows", count).member("columns", names).key("predictions").json(lines.text()).end_object();
  to.append(json.text() + "\n");
}

// Combinations of axes "u=-3:3:40" as JSON lines; the last axis varies fastest. `keep` gets the names of the axes.
std::string grid_text(const std::vector<std::string>& axes, std::vector<std::string>& keep) {
  constexpr std::size_t kMaxRows = std::size_t{1} << 26;
  std::vector<std::string> rows{""};
  std::vector<std::string> names;
  for (const std::string& axis : axes) {
    const std::size_t equals = axis.find('='), first = axis.find(':'), last = axis.rfind(':');
    std::optional<double> low, high;
    std::optional<std::int64_t> points;
    if (equals != std::string::npos && first > equals && last > first && last != std::string::npos) {
      low = parse_number<double>(axis.substr(equals + 1, first - equals - 1));
      high = parse_number<double>(axis.substr(first + 1, last - first - 1));
      points = parse_number<std::int64_t>(axis.substr(last + 1));
    }
    if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high) || !points || *points < 1)
      throw Error(ErrorKind::input, "usage.flags", fmt::format("--grid takes NAME=FIRST:LAST:POINTS, got '{}'", axis),
                  "as in --grid u=-3:3:40,v=0:1:11; both ends are included");
    if (static_cast<std::uint64_t>(*points) > kMaxRows / rows.size())
      throw Error(ErrorKind::input, "usage.flags", fmt::format("--grid has more than {} rows", kMaxRows));
    names.push_back(axis.substr(0, equals));
    std::vector<std::string> longer;
    for (const std::string& row : rows) {
      for (std::int64_t i = 0; i < *points; ++i) {
        const double share = *points == 1 ? 0 : static_cast<double>(i) / static_cast<double>(*points - 1);
        longer.push_back(fmt::format("{}{}{}: {}", row, row.empty() ? "" : ", ", json::line(json::make(names.back())),
                                     i > 0 && i + 1 == *points ? *high : *low + (*high - *low) * share));
      }
    }
    rows = std::move(longer);
  }
  keep.insert(keep.begin(), names.begin(), names.end());
  return fmt::format("{{{}}}\n", fmt::join(rows, "}\n{"));
}

int print_predictions(const Arguments& arguments, Diagnostics& diagnostics) {
  std::vector<std::string> read = {arguments.model, arguments.word, arguments.load.weights};
  read.insert(read.end(), arguments.more_weights.begin(), arguments.more_weights.end());
  ResultFile to(arguments.output, "predict.write", read, "");
  InputReader reader(arguments.model, arguments.word, arguments.load, {arguments.load.format, arguments.keep});
  if (arguments.steps && !arguments.keep.empty())
    throw Error(ErrorKind::input, "predict.steps", "--keep: rows after the end of the file have no columns to keep");
  InputRows first = *reader.next();
  LoadOptions load = arguments.load;
  load.predicts = reader.streams() ? std::max<std::int64_t>(first.rows(), 1024) : first.rows();
  std::vector<Network> networks = networks_of(arguments, load, diagnostics);
  if (arguments.steps && networks.size() > 1)
    throw Error(ErrorKind::input, "predict.steps", "--steps: windows with predictions come from one weights file");
  if (arguments.steps) first = forecast_windows(networks[0].session, first, *arguments.steps, networks[0].units);
  Predictions predictions(std::move(networks), arguments);
  if (arguments.json)
    print_json(reader, std::move(first), predictions, to);
  else
    print_csv(reader, std::move(first), predictions, to);
  to.finish();
  predictions.warn(diagnostics);
  return kDone;
}

int run_predict(const Arguments& given, Diagnostics& diagnostics) {
  if (given.word != "--grid") return print_predictions(given, diagnostics);
  Arguments arguments = given;
  const Descriptor rows(::memfd_create("grid", MFD_CLOEXEC));
  if (!write_all(rows.number(),
                 grid_text(given.grid.empty() ? std::vector{std::string()} : given.grid, arguments.keep)))
    throw Error(ErrorKind::run, "file.read", "the rows of --grid do not fit in memory");
  arguments.word = fmt::format("/proc/self/fd/{}", rows.number());
  arguments.load.format = "json";
  try {
    return print_predictions(arguments, diagnostics);
  } catch (const Error& error) {  // the file of the rows is --grid
    std::vector<Diagnostic> all = error.diagnostics();
    for (Diagnostic& one : all) {
      if (one.file == arguments.word) one.file = given.word;
      if (const std::size_t at = one.message.find(arguments.word); at != std::string::npos)
        one.message.replace(at, arguments.word.size(), given.word);
      if (const std::size_t at = one.message.find("the source has"); at != std::string::npos)
        one.message.replace(at, 14, "--grid has");
    }
    throw Error(error.kind(), std::move(all));
  }
}

}  // namespace

const Verb predict_verb = {
    "predict",
    "",
    Positionals::model_and_data,
    "print the model's outputs for the rows of a file, as CSV",
    R"(Reads a CSV, JSON, NPY, NPZ or IDX file (- for stdin) and prints the model's outputs for each row as CSV, in
the units of the targets. For a categorical target, it also prints the class, by the decision threshold that
is stored with the weights, if any. A model from init adds the probability of the second class if there are
two, and one logit per class if there are more. For a multi-label target, --labels prints all labels of a
row, as in sport;music. predict needs --weights, or a safetensors file as the model, but not the training
data.

graphrun matches columns by name: the names in the training table, or x0, x1, ... for an array x with several
columns. A column with the name of an input replaces its formula, if the file lacks a column of the formula.
graphrun ignores other columns. A JSON file contains an array of objects, or one per line. An NPY or IDX file
contains the model's only input; an NPZ file contains inputs by name. A PNG file or a folder of PNG files
contains images, in the order of their names; --keep file prints the names.

If the samples of the model are windows of consecutive rows, the first column, row, is the row that a window
predicts, counted from 0. The last one is after the end of the file. The first rows are only history.
--steps prints the next N rows instead, from windows that contain the predictions before them.

predict warns about values far outside the training rows, by the statistics of minmax, standardize and robust.

With several weights files, predict prints the mean of each output and its sample standard deviation, in a
column that ends in .std. It sums in double precision, in the order of the files. Classes are those of the
mean probabilities.

--grid predicts the combinations of numbers along axes, such as u=-3:3:40,v=0:1:11, instead of the rows of a
file. The axes are columns of the output, and the last one varies fastest.

graphrun predicts CSV rows and JSON lines from a pipe as they arrive. The outputs of a row depend on that row
alone, unless the model mixes the rows of a batch. With --json, stdout is one object;
docs/reference/command-line.md lists the keys.)",
    R"(graphrun train model.json --save-weights model.safetensors
graphrun predict model.safetensors new.csv > predictions.csv
graphrun predict model.json new.csv --weights networks/*.npz
graphrun predict airline.safetensors airline.csv --steps 12
graphrun predict peaks.safetensors --grid u=-3:3:40,v=-3:3:40 > surface.csv
tail -n +1 -f log.csv | graphrun predict model.json - --weights model.npz --keep time)",
    run_predict};

}  // namespace graphrun::cli
