#include "graph/frontend/format/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace graphrun {
namespace {

// Of the member: a number, a flag or, of words, their index.
template <auto kMember>
Field plain(std::string_view name, std::string_view doc, std::optional<double> low = {},
            std::vector<std::string_view> one_of = {}, bool above = false) {
  using T = std::remove_reference_t<decltype(std::declval<TrainSpec&>().*kMember)>;
  Field field{{name, false, doc, false, low, {}, std::move(one_of), above}};
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

Field required(std::string_view name, std::string_view doc, std::string_view hint) {
  return {{name, false, doc, true}, hint};
}

Field other(std::string_view name, std::string_view doc, std::string_view otherwise = "none") {
  return {{name, false, doc}, {}, otherwise};
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
  const std::string near = nearest_name(*word, {field.one_of.begin(), field.one_of.end()});
  reader.report(at, "model.value",
                fmt::format("{} is \"{}\", got \"{}\"", field.name, fmt::join(field.one_of, "\" or \""), *word),
                near.empty() ? std::string() : fmt::format("did you mean \"{}\"?", near));
  return std::nullopt;
}

std::string default_text(const Field& field) {
  if (field.required) return "required";
  if (!field.has_default()) return field.get != nullptr ? "none" : std::string(field.otherwise);
  const std::string text = ir::to_string(field.fallback);
  return field.one_of.empty() ? fmt::format("`{}`", text) : fmt::format("`\"{}\"`", text);
}

}  // namespace

const Fields& file_fields() {
  static const Fields table = {
      other("$schema", "for editors; ignored"),
      required("format", "1", R"(add "format": 1)"),
      other("name", "the model's name in reports", "the file's name"),
      other("description", "a comment"),
      other("constants", R"(named numbers: `{"gain": 1.5}`)"),
      required("data", "where the data come from: [data.md](data.md)", "it says where the inputs come from"),
      required("inputs", "the graph's inputs, which `data` provides",
               R"(for instance "inputs": {"x": ["batch", 6], "y": ["batch", 1]})"),
      other("parameters", "trained values; layers add more"),
      required("graph", "the values to compute, in order",
               R"j(for instance "graph": ["h = tanh(x @ W)", "loss = mean(square(h - y))"])j"),
      required("outputs", "what the model predicts",
               R"(which value answers which target, for instance "outputs": {"y_hat": "y"})"),
      required("train", "how to train it",
               R"(for instance "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}})"),
  };
  return table;
}

const Fields& input_fields() {
  static const Fields table = {
      other("dtype", R"(`"f32"`, or `"i32"` for class numbers and indices: `{"dtype": "i32", "shape": ["batch"]}`)",
            R"(`"f32"`)"),
      required("shape", "the extents", R"(for instance "shape": ["batch", 6])"),
  };
  return table;
}

const Fields& parameter_fields() {
  static const Fields table = {
      required("shape", "the extents; `[]` is a scalar", R"(for instance "shape": [784, 256])"),
      required("init",
               "the initial values: an initialiser from [ops.md](ops.md), or nested arrays of numbers; a number if the "
               "shape is `[]`",
               R"(for instance "init": {"normal": 0.1} or "init": "zeros")"),
      other("decay", "if false, `weight_decay` and `l2` do not apply to it", "`true`"),
  };
  return table;
}

const Fields& train_fields() {
  static const Fields table = {
      required("minimize", "the name of the loss: an f32 scalar of the graph",
               "the name of the loss: a scalar of the graph"),
      other("metrics", "scalars of the graph, and built-in metrics from [ops.md](ops.md). The loss is always reported",
            "`[]`"),
      required("optimizer", R"(one of [ops.md](ops.md), with PyTorch's equations and names: `{"adam": {"lr": 0.01}}`)",
               R"(for instance "optimizer": {"sgd": {"lr": 0.1}})"),
      other(
          "batch",
          "samples per step; at most the size of the training split. `\"max\"`: the largest that fits `max_memory`, or "
          "what the machine has. For predictions see [data.md](data.md#predictions)",
          R"(`"all"`)"),
      other("max_memory",
            "what the plan may take, in bytes or as `\"512MiB\"`: a larger one is refused before anything is allocated "
            "([memory.md](memory.md#a-budget))"),
      plain<&TrainSpec::drop_last>("last_batch",
                                   R"(`"drop"` leaves out a last batch that is not full. Evaluation always keeps it)",
                                   {}, {"keep", "drop"}),
      plain<&TrainSpec::epochs>("epochs", "passes over the training split", 0),
      plain<&TrainSpec::shuffle>("shuffle", "visit the rows in a different order in each epoch"),
      plain<&TrainSpec::seed>("seed",
                              "for initial values, the order of rows, random numbers and the split of the data "
                              "(recorded in the weights)",
                              0),
      plain<&TrainSpec::precision>(
          "precision",
          R"(`"tf32"` allows wide products to round their operands to a mantissa of 10 bits, for tensor cores. )"
          R"(Executors without them compute as with `"fp32"`)",
          {}, {"fp32", "tf32"}),
      plain<&TrainSpec::math>(
          "math",
          R"(`"exact"`: in regions over rows on `cuda` too, `exp`, `tanh`, division and the like give the bits of )"
          R"(`cpu`. `"fast"`: there they are off by a few units in the last place, and quicker. Nothing else is affected)",
          {}, {"exact", "fast"}),
      plain<&TrainSpec::clip_norm>(
          "clip_norm",
          "before the optimizer, scale the gradients so that their norm over all parameters does not exceed this", 0,
          {}, true),
      plain<&TrainSpec::evaluate_every>(
          "evaluate_every", "epochs between evaluations of `validation`; without it, only after the last epoch", 1),
      plain<&TrainSpec::log_every>("log_every",
                                   "epochs between reports; without it, chosen so that there are at most 200", 1),
  };
  return table;
}

void read_fields(json::Reader& reader, json::ObjectReader& object, const Fields& fields, TrainSpec& plain) {
  for (const Field& field : fields) {
    const auto at = field.required ? object.require(field.name, field.hint) : object.get(field.name);
    if (!at || field.set == nullptr) continue;
    if (const std::optional<AttrValue> value = read_plain(reader, *at, field)) field.set(field, *value, plain);
  }
}

std::string key_table(const Fields& fields) {
  std::string text = "| key | default | meaning |\n|---|---|---|\n";
  for (const Field& field : fields)
    text += fmt::format("| `{}` | {} | {} |\n", field.name, default_text(field), field.doc);
  return text;
}

}  // namespace graphrun
