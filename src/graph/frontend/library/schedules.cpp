#include "graph/frontend/library/schedules.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "graph/ops/make.h"

namespace graphrun {
namespace {

using make::like;
using make::op;
using Reals = std::vector<double>;

Var at_most_one(Var part) {
  return op("minimum", {part, like(1, part)});
}
// A quotient, not a product with 1 / length: a whole number of lengths gives that whole number.
Var lengths(const ScheduleCall& c) {
  return c.time / c.attrs.real(c.unit);
}
Var lerp(const ScheduleCall& c, Var part) {
  const double from = c.attrs.real("from");
  const Var way = part * (c.attrs.real("to") - from);
  return like(from, part) + way;
}

// from + (to - from) (1 - cos(pi t / length)) / 2
Var cosine(const ScheduleCall& c) {
  const Var turn = op("cos", {at_most_one(lengths(c)) * std::numbers::pi});
  return lerp(c, (1 - turn) * 0.5);
}

// from factor^exponent. As exp(exponent log factor) its error does not grow with the exponent but with the result's.
Var power(const ScheduleCall& c, Var exponent) {
  return op("exp", {exponent * std::log(c.attrs.real("factor"))}) * c.attrs.real("from");
}
Var step(const ScheduleCall& c) {
  // A little slack: a time that rounding left just below a whole number counts as that number.
  return power(c, op("floor", {lengths(c) + 1e-6}));
}

Var piecewise(const ScheduleCall& c) {
  const Reals& values = c.attrs.reals("values");
  const Reals& at = c.attrs.reals(c.unit);
  Var value = like(values[0], c.time);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const Var reached = op("greater_equal", {c.time + 1e-6, like(at[i], c.time)});
    value = op("where", {reached, like(values[i + 1], c.time), value});
  }
  return value;
}

// The same formulas on the host. `part`: from 0 to 1.
double between(const ScheduleCall& c, double part) {
  return c.attrs.real("from") + (c.attrs.real("to") - c.attrs.real("from")) * part;
}
double part_of(const ScheduleCall& c, double time) {
  return std::fmin(time / c.attrs.real(c.unit), 1);
}
double power_at(const ScheduleCall& c, double exponent) {
  return c.attrs.real("from") * std::pow(c.attrs.real("factor"), exponent);
}
double piecewise_at(const ScheduleCall& c, double time) {
  const Reals& at = c.attrs.reals(c.unit);
  std::size_t i = 0;
  while (i < at.size() && time + 1e-6 >= at[i]) ++i;
  return c.attrs.reals("values")[i];
}

// `example` appears in help.
ir::AttrDef real(std::string_view name, std::string_view doc, double example = 0.1) {
  return {name, example, doc, true};
}

// A number above 0, because its logarithm is used.
ir::AttrDef positive(std::string_view name, std::string_view doc) {
  return {.name = name, .fallback = 0.5, .doc = doc, .required = true, .low = 0.0, .above = true};
}

ScheduleDef row(std::string_view name, std::string_view doc, Var (*build)(const ScheduleCall&),
                double (*at)(const ScheduleCall&, double), ir::AttrSchema keys, const AttrValue& length = 0.0,
                std::string_view what = "length; give steps or epochs") {
  for (const std::string_view unit : {"steps", "epochs"}) keys.push_back({unit, length, what});
  keys.push_back({"warmup", 0.0, "length of the linear rise from 0 at the start, in steps or epochs", false, 0.0});
  return {{name, doc, std::move(keys)}, build, at};
}

[[noreturn]] void reject(std::string code, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint));
}

// The call for a spec, without its time.
ScheduleCall parse(const ScheduleSpec& spec) {
  ScheduleCall parsed{&row_named("schedule", schedules(), spec.name)};
  for (const auto& [name, value] : spec.attributes) {
    if (name != "steps" && name != "epochs") continue;
    if (!parsed.unit.empty()) reject("schedule.unit", "give the length in 'steps' or in 'epochs', not both");
    parsed.unit = name == "steps" ? "steps" : "epochs";  // not a view of the spec, which may be a temporary
  }
  const bool timed = !parsed.unit.empty();
  if (!timed && spec.name != "constant") {
    reject("schedule.unit", fmt::format("the schedule '{}' needs its length in 'steps' or 'epochs'", spec.name),
           "for instance \"epochs\": 100");
  }
  parsed.attrs = ir::Attrs(parsed.def->attributes, spec.attributes);
  if (!timed) {
    if (parsed.attrs.real("warmup") > 0) {
      reject("schedule.unit", "'warmup' needs its unit: add \"steps\" or \"epochs\"");
    }
    parsed.unit = "steps";
  } else if (spec.name != "piecewise") {
    const double length = parsed.attrs.real(parsed.unit);
    if (!(length > 0)) reject("attribute.range", fmt::format("'{}' must be > 0, got {}", parsed.unit, length));
  } else {
    const Reals& at = parsed.attrs.reals(parsed.unit);
    if (parsed.attrs.reals("values").size() != at.size() + 1) {
      reject("schedule.piecewise", fmt::format("'values' must have one entry more than '{}'", parsed.unit));
    }
    for (std::size_t i = 1; i < at.size(); ++i) {
      if (!(at[i - 1] < at[i])) reject("schedule.piecewise", fmt::format("'{}' must increase", parsed.unit));
    }
  }
  return parsed;
}

}  // namespace

const std::vector<ScheduleDef>& schedules() {
  static const ir::AttrSchema ends = {real("from", "initial value"), real("to", "final value", 0.001)};
  static const std::vector<ScheduleDef> table = {
      row(
          "constant", "keeps the same value in every step",
          [](const ScheduleCall& c) { return like(c.attrs.real("value"), c.time); },
          [](const ScheduleCall& c, double) { return c.attrs.real("value"); }, {real("value", "the constant")}),
      row(
          "linear", "changes linearly from `from` to `to` over the length, then stays at `to`",
          [](const ScheduleCall& c) { return lerp(c, at_most_one(lengths(c))); },
          [](const ScheduleCall& c, double time) { return between(c, part_of(c, time)); }, ends),
      row(
          "cosine", "follows from + (to - from) (1 - cos(pi t / length)) / 2, then stays at `to`", cosine,
          [](const ScheduleCall& c, double time) {
            return between(c, (1 - std::cos(std::numbers::pi * part_of(c, time))) / 2);
          },
          ends),
      row("step", "multiplies by factor after each length: from * factor^floor(t / length)", step,
          [](const ScheduleCall& c, double time) {
            return power_at(c, std::floor(time / c.attrs.real(c.unit) + 1e-6));
          },
          {real("from", "initial value"), positive("factor", "factor per length")}),
      row(
          "exponential", "changes exponentially: from * factor^(t / length)",
          [](const ScheduleCall& c) { return power(c, lengths(c)); },
          [](const ScheduleCall& c, double time) { return power_at(c, time / c.attrs.real(c.unit)); },
          {real("from", "initial value"), positive("factor", "factor over the length")}),
      row("piecewise",
          "starts at values[0] and takes values[i] from the i-th boundary on; steps or epochs lists the boundaries",
          piecewise, piecewise_at, {{"values", Reals{0.1, 0.01}, "one value more than boundaries", true}}, Reals{},
          "boundaries, increasing; give steps or epochs"),
  };
  return table;
}

void check_schedule(const ScheduleSpec& spec) {
  parse(spec);
}

std::optional<ScheduleEnd> end_at_zero(const ScheduleSpec& spec) {
  const ScheduleCall parsed = parse(spec);
  ScheduleEnd end{0, parsed.attrs.real("warmup"), parsed.unit};
  if (spec.name == "piecewise") {
    const Reals &values = parsed.attrs.reals("values"), &at = parsed.attrs.reals(parsed.unit);
    std::size_t zeros = 0;
    while (zeros < values.size() && !(values[values.size() - 1 - zeros] > 0)) ++zeros;
    if (zeros == 0 || zeros == values.size()) return std::nullopt;
    end.time = at[at.size() - zeros];
  } else if (spec.name == "linear" || spec.name == "cosine") {
    if (parsed.attrs.real("to") > 0 || !(parsed.attrs.real("from") > 0)) return std::nullopt;
    end.time = parsed.attrs.real(parsed.unit);
  } else {
    return std::nullopt;
  }
  end.time += end.warmup;
  return end;
}

std::function<double(double, double)> schedule_formula(const ScheduleSpec& spec) {
  return [call = parse(spec)](double step, double epoch_steps) {
    const double warmup = call.attrs.real("warmup"), time = call.unit == "epochs" ? step / epoch_steps : step;
    return call.def->at(call, std::fmax(time - warmup, 0)) * (warmup > 0 ? std::fmin(time / warmup, 1) : 1);
  };
}

ir::NodeId schedule_value(ir::Builder& f, const ScheduleSpec& spec, ir::NodeId step,
                          const std::function<ir::NodeId()>& epoch_steps) {
  ScheduleCall call = parse(spec);
  call.time = make::cast({&f, step}, DType::f32);
  if (call.unit == "epochs") call.time = call.time / Var{&f, epoch_steps()};
  const double warmup = call.attrs.real("warmup");
  if (warmup == 0) return call.def->build(call).id;

  const Var time = call.time;
  call.time = op("maximum", {time - like(warmup, time), like(0, time)});
  const Var rise = at_most_one(time / warmup);
  return (call.def->build(call) * rise).id;
}

}  // namespace graphrun
