#include "graph/frontend/format/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "graph/frontend/format/json_values.h"

namespace graphrun {
namespace {

// The member at the end of a path through optional parts.
template <auto kMember, auto... kRest>
auto& member_of(auto& spec) {
  if constexpr (sizeof...(kRest) == 0) {
    return spec.*kMember;
  } else {
    return member_of<kRest...>(*(spec.*kMember));
  }
}

// A key whose value is read into the member: a number, a flag, a text, or a word of `one_of` stored as its index.
template <auto... kPath>
Field plain(std::string_view name, std::string_view doc, std::optional<double> low = {},
            std::vector<std::string_view> one_of = {}, bool above = false, std::optional<double> high = {}) {
  using T = std::remove_cvref_t<decltype(member_of<kPath...>(std::declval<TrainSpec&>()))>;
  constexpr bool kAsItIs = std::is_same_v<T, bool> || std::is_same_v<T, double> || std::is_same_v<T, std::string>;
  Field field{{name, false, doc, false, low, high, std::move(one_of), above}};
  field.get = [](const Field& f, const TrainSpec& from) -> AttrValue {
    const T& value = member_of<kPath...>(from);
    if constexpr (!std::is_same_v<T, std::string>) {
      if (!f.one_of.empty()) return std::string(f.one_of[static_cast<std::size_t>(value)]);
    }
    if constexpr (kAsItIs) {
      return value;
    } else {
      return static_cast<std::int64_t>(value);
    }
  };
  field.set = [](const Field& f, const AttrValue& value, TrainSpec& to) {
    T& member = member_of<kPath...>(to);
    if constexpr (std::is_same_v<T, std::string>) {
      member = std::get<std::string>(value);
    } else if (const auto* word = std::get_if<std::string>(&value)) {
      member = static_cast<T>(std::find(f.one_of.begin(), f.one_of.end(), *word) - f.one_of.begin());
    } else if constexpr (kAsItIs) {
      member = std::get<T>(value);
    } else {
      member = static_cast<T>(std::get<std::int64_t>(value));
    }
  };
  TrainSpec defaults;
  defaults.early_stopping.emplace();
  defaults.lr_plateau.emplace();
  defaults.stop_at.emplace();
  field.fallback = field.get(field, defaults);
  return field;
}

template <auto kWhether>
Field set_at_run_time(Field field) {
  field.runtime = kWhether;
  return field;
}

// Keys of both parts that monitor a metric of `validation`, and those of one of them.
template <auto kPart, class Part>
Fields monitor_fields(std::string_view patience, Fields own) {
  Fields fields = {
      plain<kPart, &Part::monitor>("monitor", "`\"loss\"` or the name of a metric, on the validation split"),
      plain<kPart, &Part::mode>(
          "mode",
          R"(`"min"`: lower is better; `"max"`: higher is better; `"auto"`: the direction of the built-in metric)", {},
          {"auto", "min", "max"}),
      plain<kPart, &Part::patience>("patience", patience, 1),
      plain<kPart, &Part::min_delta>("min_delta", "smallest change that counts as an improvement", 0)};
  fields.insert(fields.end(), own.begin(), own.end());
  return fields;
}

Field required(std::string_view name, std::string_view doc, std::string_view hint) {
  return {{name, false, doc, true}, hint};
}

Field other(std::string_view name, std::string_view doc, std::string_view otherwise = "none") {
  return {{name, false, doc}, {}, otherwise};
}

// Returns nullopt if the value was reported.
std::optional<AttrValue> read_plain(json::Reader& reader, const json::Ref& at, const Field& field) {
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

}  // namespace

std::string default_text(const Field& field) {
  if (field.required) return "required";
  if (!field.has_default()) return field.get != nullptr ? "none" : std::string(field.otherwise);
  const std::string text = ir::to_string(field.fallback);
  return field.one_of.empty() ? fmt::format("`{}`", text) : fmt::format("`\"{}\"`", text);
}

const Fields& file_fields() {
  static const Fields table = {
      other("$schema", "for editors; ignored"),
      required("format", "1", R"(add "format": 1)"),
      other("name", "the model's name in reports", "the file's name"),
      other("description", "a comment"),
      other("constants", R"(named numbers: `{"gain": 1.5}`. `{"noise": {"runtime": 0.1}}` declares a [runtime )"
                         "hyperparameter](#runtime-hyperparameters)"),
      required("data", "source, split and transforms of the data: [data.md](data.md)",
               "it says where the inputs come from"),
      required("inputs", "the graph's inputs, which `data` provides",
               R"(for instance "inputs": {"x": ["batch", 6], "y": ["batch", 1]})"),
      other("parameters", "trained values; layers add more"),
      other("states", "values that only assignments in the graph change: [keys](#states)"),
      required("graph", "the values to compute, in order",
               R"j(for instance "graph": ["h = tanh(x @ W)", "loss = mean(square(h - y))"])j"),
      required("outputs", "predictions and the targets that they predict",
               R"(which value answers which target, for instance "outputs": {"y_hat": "y"})"),
      required("train", "training settings: [keys](#train)",
               R"(for instance "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}})"),
  };
  return table;
}

const Fields& input_fields() {
  static const Fields table = {
      other("dtype", R"(`"f32"`, or `"i32"` for class and row indices: `{"dtype": "i32", "shape": ["batch"]}`)",
            R"(`"f32"`)"),
      required("shape", "the extents", R"(for instance "shape": ["batch", 6])"),
  };
  return table;
}

const Fields& parameter_fields() {
  static const Fields table = {
      required("shape", "the extents; `[]` is a scalar", R"(for instance "shape": [784, 256])"),
      required("init",
               "the initial values: an [initializer](ops.md#initializers), or nested arrays of numbers; a number if "
               "the shape is `[]`",
               R"(for instance "init": {"normal": 0.1} or "init": "zeros")"),
      other("decay", "if false, `weight_decay` and `l2` do not apply to it", "`true`"),
      other("trainable", "if false, the parameter is frozen", "`true`"),
  };
  return table;
}

const Fields& state_fields() {
  static const Fields table = {
      required("shape", "the extents; `[]` is a scalar", R"(for instance "shape": [4])"),
      other("init", "initial value, as for a parameter", R"(`"zeros"`)"),
  };
  return table;
}

const Fields& train_fields() {
  static const Fields table = {
      other("minimize", "the name of the loss: an f32 scalar of the graph", "required, unless there are `objectives`"),
      other("metrics", "scalars of the graph, and [built-in metrics](ops.md#metrics). The loss is always reported",
            "`[]`"),
      other(
          "optimizer",
          R"(an [optimizer](ops.md#optimizers); equations as in PyTorch, but with decoupled weight decay: `{"adam": {"lr": 0.01}}`)",
          "required, unless there are `objectives`"),
      other("objectives", "several losses, each with its own parameters and optimizer: [keys](#objectives)"),
      other("batch",
            R"(rows per step, at most the size of the training split. `"max"`: the largest batch that fits in )"
            "`max_memory`, or in the memory of the machine. For predictions see [data.md](data.md#predictions)",
            R"(`"all"`)"),
      other("max_memory",
            "memory limit of the plan, in bytes or as `\"512MiB\"`. graphrun shrinks a larger plan without changing "
            "results. It rejects a plan that still does not fit ([memory.md](../internals/memory.md#a-budget))"),
      plain<&TrainSpec::drop_last>("last_batch",
                                   R"(`"drop"` omits an incomplete last batch from training, but not from evaluation)",
                                   {}, {"keep", "drop"}),
      plain<&TrainSpec::epochs>("epochs", "passes over the training split", 0),
      plain<&TrainSpec::shuffle>("shuffle", "use a different order of rows in each epoch"),
      plain<&TrainSpec::shards>("shards",
                                "parts of each training batch, a power of two: [ranks](../guide/ranks.md) share "
                                "them. Results depend on it, but not on the number of ranks",
                                1),
      plain<&TrainSpec::seed>(
          "seed",
          "seed of initial values, order of rows, random numbers and the split of the data (recorded in the "
          "weights)",
          0),
      plain<&TrainSpec::precision>(
          "precision",
          R"(`"tf32"` allows large matrix products to round their operands to a 10-bit mantissa, for tensor cores. )"
          R"(Executors without tensor cores use `"fp32"`. `"fp64"` trains and predicts in double precision, on `cpu` and )"
          R"(`ref` ([training.md](../guide/training.md#double-precision)))",
          {}, {"fp32", "tf32", "fp64"}),
      plain<&TrainSpec::math>(
          "math",
          R"(accuracy of `exp`, `tanh`, division and similar functions in regions over rows on `cuda`. `"exact"`: )"
          R"(bitwise identical to functions on `cpu` (sums may differ); `"fast"`: faster, and off by a few units in the last place. Other kernels are exact)",
          {}, {"exact", "fast"}),
      set_at_run_time<&TrainSpec::clip_norm_at_run_time>(plain<&TrainSpec::clip_norm>(
          "clip_norm",
          "largest norm of all gradients of the loss together. Larger gradients are scaled down before the update. "
          "Either a number or [a runtime hyperparameter](#runtime-hyperparameters)",
          0, {}, true)),
      plain<&TrainSpec::clip_value>("clip_value",
                                    "largest absolute value of an element of a gradient. `clip_norm` applies after it",
                                    0, {}, true),
      plain<&TrainSpec::evaluate_every>(
          "evaluate_every",
          "epochs between evaluations of `validation`. Without it, graphrun evaluates after the last epoch; "
          "with `early_stopping` or `lr_plateau`, after each epoch",
          1),
      plain<&TrainSpec::evaluate_every_steps>("evaluate_every_steps", "steps between evaluations", 1),
      other("early_stopping", "stops training when a validation metric stops improving: [keys](#early_stopping)"),
      other("lr_plateau", "lowers the learning rate when a validation metric stops improving: [keys](#lr_plateau)"),
      other("stop_at", "stops training at a given training loss: [keys](#stop_at)"),
      other("threshold", "decision threshold to choose on `validation` when training ends: [keys](#threshold)",
            "a probability above 1/2"),
      plain<&TrainSpec::log_every>("log_every", "epochs between reports. Without it, at most 200 reports", 1),
      plain<&TrainSpec::log_spaced>("log_spaced", "report after epochs 1, 2, 5, 10, 20, 50, … instead of `log_every`"),
  };
  return table;
}

const Fields& objective_fields() {
  static const Fields table = {
      required("minimize", "the name of its loss: an f32 scalar of the graph",
               "the name of its loss: a scalar of the graph"),
      required("parameters",
               R"(parameters to update: names of parameters, or of layers for all of a layer's parameters; `"D"` also )"
               R"(selects `D.W` and `D.h1.W`. A parameter belongs to one objective)",
               R"(for instance "parameters": ["W", "h2"])"),
      required("optimizer", "its optimizer, in the same form as in `train`",
               R"(for instance "optimizer": {"sgd": {"lr": 0.1}})"),
      other("every", "update interval in steps: parameters are updated in the last step of each interval", "`1`"),
  };
  return table;
}

const Fields& early_stopping_fields() {
  static const Fields table = monitor_fields<&TrainSpec::early_stopping, EarlyStopping>(
      "consecutive evaluations without improvement until training stops",
      {plain<&TrainSpec::early_stopping, &EarlyStopping::restore_best>(
          "restore_best", "restore the parameters of the best evaluation when training ends")});
  return table;
}

const Fields& lr_plateau_fields() {
  static const Fields table = monitor_fields<&TrainSpec::lr_plateau, LrPlateau>(
      "consecutive evaluations without improvement until the learning rate drops",
      {plain<&TrainSpec::lr_plateau, &LrPlateau::factor>(
           "factor", "factor by which the learning rate (or the value of its schedule) is multiplied", 0, {}, true, 1),
       plain<&TrainSpec::lr_plateau, &LrPlateau::cooldown>("cooldown", "evaluations to ignore after each reduction", 0),
       plain<&TrainSpec::lr_plateau, &LrPlateau::min_factor>(
           "min_factor", "lowest fraction of the original learning rate", 0, {}, false, 1)});
  return table;
}

const Fields& stop_at_fields() {
  static const Fields table = [] {
    Field loss = plain<&TrainSpec::stop_at, &StopAt::loss>(
        "loss", "the first step with at most this training loss is the last; no later step changes the model");
    loss.required = true;
    loss.hint = R"(for instance "stop_at": {"loss": 1e-6})";
    return Fields{
        std::move(loss),
        plain<&TrainSpec::stop_at, &StopAt::gradient>(
            "gradient", "the first step in whose gradient no element is larger is the last; 0: not checked", 0)};
  }();
  return table;
}

const Fields& threshold_fields() {
  static const Fields table = {required(
      "by",
      R"(`"f1"`: largest F1; `{"recall": 0.9}`: largest precision with at least this recall; `{"precision": 0.9}`: )"
      R"(largest recall with at least this precision; `{"cost": [[0, 1], [5, 0]]}`: smallest total cost (rows: actual, columns: predicted))",
      R"(for instance "threshold": {"by": "f1"})")};
  return table;
}

void read_fields(json::Reader& reader, json::ObjectReader& object, const Fields& fields, TrainSpec& plain) {
  for (const Field& field : fields) {
    const auto at = field.required ? object.require(field.name, field.hint) : object.get(field.name);
    if (!at || field.set == nullptr) continue;
    if (field.runtime != nullptr && is_runtime(*at->value)) {
      const std::optional<double> number = read_runtime(reader, *at);
      if (number && *number < 0) reader.report(*at, "model.range", fmt::format("must be >= 0, got {}", *number));
      plain.*field.runtime = true;
      field.set(field, number.value_or(0), plain);
      continue;
    }
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
