#include "graph/frontend/format/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace graphrun {
namespace {

// The member is a number or a flag; of words it holds the index.
template <auto kMember>
Field plain(ir::AttrDef def) {
  using T = std::remove_reference_t<decltype(std::declval<TrainSpec&>().*kMember)>;
  Field field{std::move(def)};
  field.get = [](const Field& f, const TrainSpec& from) -> AttrValue {
    const T value = from.*kMember;
    if (!f.one_of.empty()) return std::string(f.one_of[static_cast<std::size_t>(value)]);
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) return value;
    return static_cast<std::int64_t>(value);
  };
  field.set = [](const Field& f, const AttrValue& value, TrainSpec& to) {
    if (const auto* word = std::get_if<std::string>(&value)) {
      to.*kMember = static_cast<T>(std::find(f.one_of.begin(), f.one_of.end(), *word) - f.one_of.begin());
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) {
      to.*kMember = std::get<T>(value);
    } else {
      to.*kMember = static_cast<T>(std::get<std::int64_t>(value));
    }
  };
  field.fallback = field.get(field, TrainSpec());
  return field;
}

Field required(std::string_view name, Form form, std::string_view doc, std::string_view hint) {
  return {{name, false, doc, true}, form, hint};
}

Field other(std::string_view name, Form form, std::string_view doc, std::string_view otherwise = "none") {
  return {{name, false, doc}, form, {}, otherwise};
}

// Nothing when the value was reported.
std::optional<AttrValue> read_plain(json::Reader& reader, const json::Place& at, const Field& field) {
  if (std::holds_alternative<bool>(field.fallback)) return reader.boolean(at);
  if (std::holds_alternative<std::int64_t>(field.fallback)) {
    return reader.integer(at, static_cast<std::int64_t>(*field.low), std::numeric_limits<std::int64_t>::max());
  }
  if (std::holds_alternative<double>(field.fallback)) {
    const std::optional<double> number = reader.number(at);
    if (!number || fits(field, *number)) return number;
    reader.report(at, "model.range", fmt::format("must be {}, got {}", expected(field), *number));
    return std::nullopt;
  }
  const std::optional<std::string> word = reader.string(at);
  if (!word || fits(field, *word)) return word;
  reader.report(at, "model.value",
                fmt::format("{} is \"{}\", got \"{}\"", field.name, fmt::join(field.one_of, "\" or \""), *word));
  return std::nullopt;
}

std::string default_text(const Field& field) {
  if (field.required) return "required";
  if (!field.has_default()) return field.form == Form::plain ? "none" : std::string(field.otherwise);
  const std::string text = ir::to_string(field.fallback);
  return field.one_of.empty() ? fmt::format("`{}`", text) : fmt::format("`\"{}\"`", text);
}

}  // namespace

const Fields& file_fields() {
  static const Fields table = {
      other("$schema", Form::text, "for editors; ignored"),
      required("format", Form::format, "1", R"(add "format": 1)"),
      other("name", Form::name, "the model's name in reports", "the file's name"),
      other("description", Form::text, "a comment"),
      other("constants", Form::constants, R"(named numbers: `{"gain": 1.5}`)"),
      required("data", Form::data, "where the data come from: [data.md](data.md)",
               "it says where the inputs come from"),
      required("inputs", Form::inputs, "the graph's inputs, which `data` provides",
               R"(for instance "inputs": {"x": ["batch", 6], "y": ["batch", 1]})"),
      other("parameters", Form::parameters, "trained values; layers add more"),
      required("graph", Form::graph, "the values to compute, in order",
               R"j(for instance "graph": ["h = tanh(x @ W)", "loss = mean(square(h - y))"])j"),
      required("outputs", Form::outputs, "what the model predicts",
               R"(which value answers which target, for instance "outputs": {"y_hat": "y"})"),
      required("train", Form::train, "how to train it",
               R"(for instance "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}})"),
  };
  return table;
}

const Fields& input_fields() {
  static const Fields table = {
      other("dtype", Form::dtype,
            R"(`"f32"`, or `"i32"` for class numbers and indices: `{"dtype": "i32", "shape": ["batch"]}`)",
            R"(`"f32"`)"),
      required("shape", Form::batch_shape, "the extents", R"(for instance "shape": ["batch", 6])"),
  };
  return table;
}

const Fields& parameter_fields() {
  static const Fields table = {
      required("shape", Form::shape, "the extents; `[]` is a scalar", R"(for instance "shape": [784, 256])"),
      required("init", Form::init,
               "the initial values: an initialiser from [ops.md](ops.md), or nested arrays of numbers; a number if the "
               "shape is "
               "`[]`",
               R"(for instance "init": {"normal": 0.1} or "init": "zeros")"),
      other("decay", Form::decay, "if false, `weight_decay` and `l2` do not apply to it", "`true`"),
  };
  return table;
}

const Fields& train_fields() {
  static const Fields table = {
      required("minimize", Form::loss, "the name of the loss: an f32 scalar of the graph",
               "the name of the loss: a scalar of the graph"),
      other("metrics", Form::metrics,
            "scalars of the graph, and built-in metrics from [ops.md](ops.md). The loss is always reported", "`[]`"),
      required("optimizer", Form::optimizer,
               R"(one of [ops.md](ops.md), with PyTorch's equations and names: `{"adam": {"lr": 0.01}}`)",
               R"(for instance "optimizer": {"sgd": {"lr": 0.1}})"),
      other("batch", Form::batch,
            "samples per step; at most the size of the training split. For predictions see "
            "[data.md](data.md#predictions)",
            R"(`"all"`)"),
      plain<&TrainSpec::drop_last>(
          {.name = "last_batch",
           .fallback = {},
           .doc = R"(`"drop"` leaves out a last batch that is not full. Evaluation always keeps it)",
           .one_of = {"keep", "drop"}}),
      plain<&TrainSpec::epochs>(
          {.name = "epochs", .fallback = {}, .doc = "passes over the training split", .low = 0.0}),
      plain<&TrainSpec::shuffle>(
          {.name = "shuffle", .fallback = {}, .doc = "visit the rows in a different order in each epoch"}),
      plain<&TrainSpec::seed>({.name = "seed",
                               .fallback = {},
                               .doc = "for initial values, the order of rows, random numbers and the split of the data "
                                      "(recorded in the weights)",
                               .low = 0.0}),
      plain<&TrainSpec::precision>(
          {.name = "precision",
           .fallback = {},
           .doc =
               R"(`"tf32"` allows wide products to round their operands to a mantissa of 10 bits, for tensor cores. )"
               R"(Executors without them compute as with `"fp32"`)",
           .one_of = {"fp32", "tf32"}}),
      plain<&TrainSpec::clip_norm>(
          {.name = "clip_norm",
           .fallback = {},
           .doc = "before the optimizer, scale the gradients so that their norm over all parameters does not exceed "
                  "this",
           .low = 0.0,
           .above = true}),
      plain<&TrainSpec::evaluate_every>(
          {.name = "evaluate_every",
           .fallback = {},
           .doc = "epochs between evaluations of `validation`; without it, only after the last epoch",
           .low = 1.0}),
      plain<&TrainSpec::log_every>({.name = "log_every",
                                    .fallback = {},
                                    .doc = "epochs between reports; without it, chosen so that there are at most 200",
                                    .low = 1.0}),
  };
  return table;
}

void read_fields(json::Reader& reader, json::ObjectReader& object, const Fields& fields, TrainSpec& plain,
                 const std::function<void(const Field& field, const json::Place& at)>& read) {
  for (const Field& field : fields) {
    const std::optional<json::Place> at =
        field.required ? object.require(field.name, field.hint) : object.get(field.name);
    if (!at) continue;
    if (field.form != Form::plain) {
      read(field, *at);
    } else if (const std::optional<AttrValue> value = read_plain(reader, *at, field)) {
      field.set(field, *value, plain);
    }
  }
}

std::string key_table(const Fields& fields) {
  std::string text = "| key | default | meaning |\n|---|---|---|\n";
  for (const Field& field : fields)
    text += fmt::format("| `{}` | {} | {} |\n", field.name, default_text(field), field.doc);
  return text;
}

}  // namespace graphrun
