// c_source.cpp: exports inference as one C99 file: weights, functions, one line per step, and a self-test.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "export/c/arena.h"
#include "export/c/functions.h"
#include "export/c/steps.h"
#include "export/c/text.h"
#include "graphrun/deployment.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using namespace c99;

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::int64_t numbers_of(const Program& program, const DeployedValue& value) {
  return program.buffers[value.buffer].type.shape.elements();
}

std::string doubles(const std::vector<double>& values) {
  return elements(from_doubles(values, {DType::f64, Shape{static_cast<std::int64_t>(values.size())}, 0}));
}

class Source {
 public:
  Source(const Deployment& deployment, const std::string& name)
      : d_(deployment),
        program_(deployment.program),
        name_(name),
        big_(upper(name)),
        arena_(plan_arena(deployment)),
        functions_(name, big_) {
    const auto is_column = [](const DeployedValue& one) { return one.column.has_value(); };
    if (std::any_of(d_.inputs.begin(), d_.inputs.end(), is_column)) row_ = names_.unique("row");
    for (const DeployedValue& input : d_.inputs) {
      fields_.push_back(input.column ? field_names_.unique(input.name) : "");
      arguments_.push_back(input.column ? fmt::format("&{}->{}", row_, fields_.back()) : names_.unique(input.name));
    }
    for (const DeployedValue& output : d_.outputs) results_.push_back(names_.unique(output.name));
    for (std::size_t i = 0; i < d_.inputs.size(); ++i) tables_.push_back(table_name(d_.inputs[i], fields_[i]));
    for (std::size_t i = 0; i < d_.outputs.size(); ++i) tables_.push_back(table_name(d_.outputs[i], results_[i]));
    for (const auto& [id, tensor] : d_.values)
      constants_[id] = names_.unique(name_ + "_" + identifier(program_.buffers[id].name));
  }

  std::string write() {
    const std::string body = predict();  // collects functions and unsupported steps
    std::string text = head();
    text += fmt::format("#ifndef {}_DECLARATIONS\n#include <math.h>\n\n", big_);
    text += fmt::format(
        R"(/* Sums and functions are computed in double, which gives the results of graphrun's reference, or with -D{0}_FLOAT in
   float, for machines that have no double. */
#ifdef {0}_FLOAT
typedef float {1}_real;
#define {0}_MATH(function) function##f
#else
typedef double {1}_real;
#define {0}_MATH(function) function
#endif

)",
        big_, name_);
    each_table([&](const std::string& name, const std::vector<std::string>& words) {
      std::vector<std::string> items;
      for (const std::string& word : words) items.push_back("    " + string_literal(word));
      text += fmt::format("const char *const {}[{}] = {{\n{}\n}};\n", name, words.size(), fmt::join(items, ",\n"));
    });
    for (const auto& [id, tensor] : d_.values) text += constant(id, tensor);
    text += units_;
    text += "\n" + functions_.text() + body + self_test() + "#endif\n";
    return text;
  }

 private:
  std::string signature() const {
    std::string text = fmt::format("void {}_predict(void *arena", name_);
    if (!row_.empty()) text += fmt::format(", const {}_row *{}", name_, row_);
    for (std::size_t i = 0; i < d_.inputs.size(); ++i)
      if (!d_.inputs[i].column)
        text += fmt::format(", const {} *{}", type_name(type(d_.inputs[i].buffer).dtype), arguments_[i]);
    for (std::size_t i = 0; i < d_.outputs.size(); ++i)
      text += fmt::format(", {} *{}", type_name(type(d_.outputs[i].buffer).dtype), results_[i]);
    return text + ")";
  }

  std::string head() const {
    std::string shapes;
    const auto add = [&](const std::vector<DeployedValue>& values, const std::vector<std::string>& names,
                         std::string_view what) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const TensorType& of = type(values[i].buffer);
        if (values[i].column) {
          shapes += column_line(values[i], what);
          continue;
        }
        Shape sample = of.shape;
        shapes += fmt::format("   {:<9} {}: {} {}{}\n", what, names[i], type_name(of.dtype),
                              comment_text(to_string(sample)), values[i].units ? ", in the units of the data" : "");
      }
    };
    add(d_.inputs, arguments_, "input");
    add(d_.outputs, results_, "output");
    return fmt::format(R"(/* {}: predictions of one sample, written by graphrun export-c.
   C99 without allocation; link with -lm.
{}   `arena`: {}_ARENA_BYTES bytes, aligned to {}, for values in between; its contents need not be kept. Calls with
   arenas of their own may run at once. Outputs must not overlap inputs.
   -D{}_SELF_TEST adds a main() that repeats predictions of graphrun. For declarations only, include this file with
   {}_DECLARATIONS defined.{} */
#ifndef {}_ARENA_BYTES
#include <stdint.h>

#define {}_ARENA_BYTES {}

{}{};
#endif

)",
                       comment_text(d_.model), shapes, big_, arena_.alignment, big_, big_, columns(), big_, big_,
                       std::max<std::uint64_t>(arena_.bytes, 1), declarations(), signature());
  }

  std::string table_name(const DeployedValue& value, const std::string& name) {
    return value.column && !value.column->categories.empty() ? names_.unique(name_ + "_" + name) : "";
  }

  // Calls f(name of the table, its categories).
  template <class F>
  void each_table(F f) const {
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const DeployedValue& value = i < d_.inputs.size() ? d_.inputs[i] : d_.outputs[i - d_.inputs.size()];
      if (!tables_[i].empty()) f(tables_[i], value.column->categories);
    }
  }

  std::string column_line(const DeployedValue& value, std::string_view what) const {
    const bool is_input = what == "input";
    const std::size_t i = static_cast<std::size_t>(&value - (is_input ? d_.inputs : d_.outputs).data());
    const std::string name = is_input ? row_ + "->" + fields_[i] : results_[i];
    const std::string& table = tables_[is_input ? i : d_.inputs.size() + i];
    return fmt::format("   {:<9} {}: {}{}{}\n", what, name, comment_text(value.column->text),
                       table.empty() ? "" : ", an index of " + table,
                       value.column->other ? "; the last one stands for all other values" : "");
  }

  std::string declarations() const {
    std::string fields, tables;
    for (std::size_t i = 0; i < d_.inputs.size(); ++i)
      if (d_.inputs[i].column)
        fields += fmt::format("  {} {};\n", type_name(type(d_.inputs[i].buffer).dtype), fields_[i]);
    each_table([&](const std::string& name, const std::vector<std::string>& words) {
      tables += fmt::format("extern const char *const {}[{}];\n", name, words.size());
    });
    if (!fields.empty()) fields = fmt::format("typedef struct {{\n{}}} {}_row;\n", fields, name_);
    return fields + tables;
  }

  std::string columns() const {
    std::string lines;
    for (const std::string& line : d_.columns) lines += "\n     " + comment_text(line);
    return lines.empty() ? lines : "\n   " + std::string(kColumnsBefore) + lines;
  }

  std::string constant(BufferId id, const HostTensor& tensor) const {
    return fmt::format("/* {} {} */\nstatic const {} {}[{}] = {{\n{}\n}};\n", comment_text(program_.buffers[id].name),
                       to_string(tensor.shape()), type_name(tensor.dtype()), constants_.at(id),
                       tensor.shape().elements(), elements(tensor));
  }

  const TensorType& type(BufferId id) const { return program_.buffers[id].type; }

  // Emits the standardization constants of an input once, even if an output shares them.
  std::string units(const Standardization& one) {
    const std::string shown = name_ + "_" + identifier(one.input);
    if (std::find(with_units_.begin(), with_units_.end(), shown) == with_units_.end()) {
      with_units_.push_back(shown);
      for (const auto& [what, values] : {std::pair("shift", &one.shift), std::pair("scale", &one.scale)})
        units_ +=
            fmt::format("static const double {}_{}[{}] = {{\n{}\n}};\n", shown, what, values->size(), doubles(*values));
    }
    return fmt::format("{0}_shift, {0}_scale, {1}", shown, one.scale.size());
  }

  std::string place(BufferId id) {
    const BufferId root = storage_root(program_, id);
    const Buffer& buffer = program_.buffers[id];
    if (arena_.offsets.contains(root)) {
      const auto known = locals_.find(id);
      if (known != locals_.end()) return known->second;
      std::string shown = buffer.name;
      if (const std::size_t slash = shown.find('/'); slash != std::string::npos) shown = shown.substr(slash + 1);
      const std::string local = names_.unique(shown);
      declarations_ += fmt::format("  {0} *const {1} = ({0} *)(void *)((unsigned char *)arena + {2});\n",
                                   type_name(buffer.type.dtype), local, arena_.offset(program_, id));
      return locals_[id] = local;
    }
    const std::int64_t shift =
        static_cast<std::int64_t>((buffer.offset - program_.buffers[root].offset) / size_of(buffer.type.dtype));
    const auto shifted = [&](const std::string& base) {
      return shift == 0 ? base : fmt::format("{} + {}", base, shift);
    };
    if (const auto constant = constants_.find(root); constant != constants_.end()) return shifted(constant->second);
    for (std::size_t i = 0; i < d_.inputs.size(); ++i)
      if (d_.inputs[i].buffer == root) return shifted(arguments_[i]);
    throw std::logic_error("c_source: a step reads a buffer that nothing writes: " + buffer.name);
  }

  std::string predict() {
    std::string lines;
    for (std::size_t i = 0; i < d_.inputs.size(); ++i) {
      const DeployedValue& input = d_.inputs[i];
      if (!arena_.offsets.contains(input.buffer)) {
        lines += is_in_place(d_, input) && is_read(input.buffer) ? "" : fmt::format("  (void){};\n", arguments_[i]);
        continue;
      }
      const DType dtype = type(input.buffer).dtype;
      const std::string to = place(input.buffer);
      lines += input.units ? fmt::format("  {}({}, {}, {}, {});\n", functions_.to_stored(dtype, input.units->log),
                                         arguments_[i], units(*input.units), to, numbers_of(program_, input))
                           : fmt::format("  {}({}, 1, {}, 1, {});\n", functions_.cast(dtype, dtype), arguments_[i], to,
                                         numbers_of(program_, input));
    }
    std::vector<Diagnostic> problems;
    for (const Step& step : d_.phase().steps) {
      const Statement line = statement(
          program_, step, [&](BufferId id) { return place(id); }, functions_);
      if (!line.problem.empty()) {
        Diagnostic problem;
        problem.code = "export.unsupported";
        problem.message = fmt::format("'{}': {} is not exported to C", shown(step), line.problem);
        problems.push_back(std::move(problem));
      } else if (!line.text.empty()) {
        lines += fmt::format("  {}  /* {} */\n", line.text, comment_text(shown(step)));
      }
    }
    if (!problems.empty()) throw Error(ErrorKind::input, std::move(problems));
    for (std::size_t i = 0; i < d_.outputs.size(); ++i) {
      const DeployedValue& output = d_.outputs[i];
      const DType dtype = type(output.buffer).dtype;
      lines += output.units
                   ? fmt::format("  {}({}, {}, {}, {});\n", functions_.to_user(output.units->log), place(output.buffer),
                                 units(*output.units), results_[i], numbers_of(program_, output))
                   : fmt::format("  {}({}, 1, {}, 1, {});\n", functions_.cast(dtype, dtype), place(output.buffer),
                                 results_[i], numbers_of(program_, output));
    }
    for (std::size_t at = lines.find("(REAL)"); at != std::string::npos; at = lines.find("(REAL)", at))
      lines.replace(at, 6, fmt::format("({}_real)", name_));
    return fmt::format("{} {{\n{}{}{}}}\n\n", signature(), arena_.offsets.empty() ? "  (void)arena;\n" : "",
                       declarations_, lines);
  }

  bool is_read(BufferId root) const {
    const auto reads = [&](BufferId id) { return storage_root(program_, id) == root; };
    return std::any_of(d_.phase().steps.begin(), d_.phase().steps.end(),
                       [&](const Step& step) { return std::any_of(step.inputs.begin(), step.inputs.end(), reads); }) ||
           std::any_of(d_.outputs.begin(), d_.outputs.end(),
                       [&](const DeployedValue& one) { return reads(one.buffer); });
  }

  static std::string shown(const Step& step) {
    const std::size_t slash = step.name.find('/');
    return slash == std::string::npos ? step.name : step.name.substr(slash + 1);
  }

  std::string self_test() const {
    const std::int64_t samples =
        d_.example_inputs.empty() ? 0 : d_.example_inputs.front().shape()[0] / type(d_.inputs.front().buffer).rows;
    std::string text = fmt::format("#ifdef {}_SELF_TEST\n#include <stdio.h>\n#include <string.h>\n\n", big_);
    const auto table = [&](const std::string& of, const HostTensor& values) {
      text += fmt::format("static const {} {}_test_{}[{}] = {{\n{}\n}};\n", type_name(values.dtype()), name_, of,
                          values.shape().elements(), elements(values));
    };
    for (std::size_t i = 0; i < d_.inputs.size(); ++i)
      if (!d_.inputs[i].column) table(arguments_[i], d_.example_inputs[i]);
    if (!row_.empty()) text += test_rows(samples);
    for (std::size_t i = 0; i < d_.outputs.size(); ++i) table(results_[i], d_.example_outputs[i]);
    bool has_f32 = false;
    for (const DeployedValue& output : d_.outputs) has_f32 = has_f32 || type(output.buffer).dtype == DType::f32;
    if (has_f32) {
      text += fmt::format(R"(
/* How many floats lie between the two; of different signs the distances from zero. */
static double {}_ulps(float a, float b) {{
  int32_t i, j;
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0.0 : 1e30;
  memcpy(&i, &a, sizeof i);
  memcpy(&j, &b, sizeof j);
  if (i < 0) i = -2147483647 - 1 - i;
  if (j < 0) j = -2147483647 - 1 - j;
  return fabs((double)i - (double)j);
}}
)",
                          name_);
    }
    text += fmt::format(R"(
/* 0: every number is within {0}_SELF_TEST_ULPS of graphrun's. */
#ifndef {0}_SELF_TEST_ULPS
#define {0}_SELF_TEST_ULPS 1
#endif
int main(void) {{
  static union {{
    double aligned;
    unsigned char bytes[{0}_ARENA_BYTES];
  }} arena;
  double worst = 0;
  int sample, i;
  for (sample = 0; sample < {1}; sample++) {{
)",
                        big_, samples);
    std::string call = fmt::format("    {}_predict(&arena", name_), checks;
    if (!row_.empty()) call += fmt::format(", {}_test_{} + sample", name_, row_);
    for (std::size_t i = 0; i < d_.inputs.size(); ++i)
      if (!d_.inputs[i].column)
        call += fmt::format(", {}_test_{} + sample * {}", name_, arguments_[i], numbers_of(program_, d_.inputs[i]));
    for (std::size_t i = 0; i < d_.outputs.size(); ++i) {
      const std::int64_t count = numbers_of(program_, d_.outputs[i]);
      const DType dtype = type(d_.outputs[i].buffer).dtype;
      const std::string got = "got_" + results_[i];  // prefixed: an output may share a name with a variable of main()
      text += fmt::format("    static {} {}[{}];\n", type_name(dtype), got, count);
      call += ", " + got;
      const std::string expected = fmt::format("{}_test_{}[sample * {} + i]", name_, results_[i], count);
      const std::string difference =
          dtype == DType::f32 ? fmt::format("{}_ulps({}[i], {})", name_, got, expected)
          : dtype == DType::f64
              ? fmt::format("fabs({}[i] - {}) <= 1e-14 * fabs({}) ? 0.0 : 1e30", got, expected, expected)
              : fmt::format("{}[i] == {} ? 0.0 : 1e30", got, expected);
      checks += fmt::format(
          "    for (i = 0; i < {}; i++) {{\n      const double u = {};\n      if (u > worst) worst = u;\n    }}\n",
          count, difference);
    }
    text += call + ");\n" + checks;
    text += fmt::format(R"(  }}
  printf("{0}: {1} predictions, largest difference %g ulp, arena %d bytes\n", worst, (int){2}_ARENA_BYTES);
  return worst > {2}_SELF_TEST_ULPS;
}}
#endif
)",
                        name_, samples, big_);
    return text;
  }

  std::string test_rows(std::int64_t samples) const {
    std::string rows;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      std::vector<std::string> values;
      for (std::size_t i = 0; i < d_.inputs.size(); ++i) {
        if (!d_.inputs[i].column) continue;
        const HostTensor& all = d_.example_inputs[i];
        HostTensor one(all.dtype(), Shape{1});
        const std::size_t size = one.bytes().size();
        std::copy_n(all.bytes().begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(sample) * size), size,
                    one.bytes().begin());
        values.push_back(elements(one).substr(4));
      }
      rows += fmt::format("    {{{}}},\n", fmt::join(values, ", "));
    }
    return fmt::format("static const {0}_row {0}_test_{1}[{2}] = {{\n{3}}};\n", name_, row_, samples, rows);
  }

  const Deployment& d_;
  const Program& program_;
  std::string name_, big_;
  Arena arena_;
  Functions functions_;
  Names names_;
  std::vector<std::string> arguments_, results_, with_units_;
  std::string row_;  // argument with the columns; empty without columns
  Names field_names_;
  std::vector<std::string> fields_;  // per input: its field of the row; empty if it is not a column
  std::vector<std::string> tables_;  // per input and output: its table of categories, or empty
  std::map<BufferId, std::string> constants_, locals_;
  std::string declarations_, units_;
};

}  // namespace

std::string c_name(const std::string& text) {
  const std::size_t begin = text.find_last_of('/') == std::string::npos ? 0 : text.find_last_of('/') + 1;
  const std::string stem = text.substr(begin, text.find('.', begin) - begin);
  return identifier(stem);
}

std::string c_source(const Deployment& deployment, const std::string& name) {
  if (identifier(name) != name)
    throw Error(ErrorKind::input, "export.name",
                fmt::format("'{}' does not begin names of C: letters, digits and _, no digit first", name));
  return Source(deployment, name).write();
}

}  // namespace graphrun
