#include "graph/frontend/library/schedules.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "graph/ops/make.h"

namespace graphrun {
namespace {

using ir::NodeId;
using Reals = std::vector<double>;

NodeId number(NodeFactory& f, double value) {
  return f.scalar(value, DType::f32);
}
NodeId lerp(NodeFactory& f, double from, double to, NodeId part) {
  return make::add(f, number(f, from), make::scale(f, part, to - from));
}
// A quotient, not a product with 1 / length: a whole number of lengths gives that whole number.
NodeId lengths(NodeFactory& f, NodeId time, double length) {
  return make::div(f, time, number(f, length));
}
// time / length, at most 1
NodeId progress(NodeFactory& f, NodeId time, double length) {
  return f.add("minimum", {lengths(f, time, length), number(f, 1)});
}

NodeId constant(NodeFactory& f, const ir::Attrs& attrs, NodeId, double) {
  return number(f, attrs.real("value"));
}

NodeId linear(NodeFactory& f, const ir::Attrs& attrs, NodeId time, double length) {
  return lerp(f, attrs.real("from"), attrs.real("to"), progress(f, time, length));
}

// from + (to - from) (1 - cos(pi t / length)) / 2
NodeId cosine(NodeFactory& f, const ir::Attrs& attrs, NodeId time, double length) {
  const NodeId turn = f.add("cos", {make::scale(f, progress(f, time, length), std::numbers::pi)});
  const NodeId part = make::scale(f, make::sub(f, number(f, 1), turn), 0.5);
  return lerp(f, attrs.real("from"), attrs.real("to"), part);
}

// from factor^exponent. As exp(exponent log factor) its error does not grow with the exponent but with the result's.
NodeId power(NodeFactory& f, const ir::Attrs& attrs, NodeId exponent) {
  const NodeId factor = f.add("exp", {make::scale(f, exponent, std::log(attrs.real("factor")))});
  return make::scale(f, factor, attrs.real("from"));
}
NodeId step(NodeFactory& f, const ir::Attrs& attrs, NodeId time, double length) {
  // A little slack: a time that rounding left just below a whole number counts as that number.
  return power(f, attrs, f.add("floor", {make::add(f, lengths(f, time, length), number(f, 1e-6))}));
}
NodeId exponential(NodeFactory& f, const ir::Attrs& attrs, NodeId time, double length) {
  return power(f, attrs, lengths(f, time, length));
}

NodeId piecewise(NodeFactory& f, const ir::Attrs& attrs, NodeId time, double) {
  const Reals& values = attrs.reals("values");
  const Reals& at = attrs.reals("at");
  NodeId value = number(f, values[0]);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const NodeId reached = f.add("greater_equal", {make::add(f, time, number(f, 1e-6)), number(f, at[i])});
    value = f.add("where", {reached, number(f, values[i + 1]), value});
  }
  return value;
}

ir::AttrDef real(std::string_view name, std::string_view doc) {
  return {name, 0.0, doc, true};
}

// Above zero: its logarithm is taken.
ir::AttrDef positive(std::string_view name, std::string_view doc) {
  return {.name = name, .fallback = 0.0, .doc = doc, .required = true, .low = 0.0, .above = true};
}

struct Unit {
  std::string name;
  AttrValue length;
  AttrList rest;
  double warmup = 0;
};

[[noreturn]] void fail(std::string code, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint));
}

double as_number(const std::string& name, const AttrValue& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  fail("schedule.kind", fmt::format("'{}' must be a number", name));
}

Unit split_unit(const ScheduleSpec& spec) {
  Unit unit;
  for (const auto& [name, value] : spec.attributes) {
    if (name == "steps" || name == "epochs") {
      if (!unit.name.empty()) fail("schedule.unit", "give the length in 'steps' or in 'epochs', not both");
      unit.name = name;
      unit.length = value;
    } else if (name == "warmup") {
      unit.warmup = as_number(name, value);
      if (!(unit.warmup >= 0)) fail("attribute.range", fmt::format("'warmup' must be >= 0, got {}", unit.warmup));
    } else {
      unit.rest.emplace_back(name, value);
    }
  }
  if (spec.name != "constant" && unit.name.empty()) {
    fail("schedule.unit", fmt::format("the schedule '{}' needs its length in 'steps' or 'epochs'", spec.name),
         "for instance \"epochs\": 100");
  }
  if (unit.name.empty()) {
    if (unit.warmup > 0) fail("schedule.unit", "'warmup' needs its unit: add \"steps\" or \"epochs\"");
    unit.name = "steps";
    unit.length = 1.0;
  }
  return unit;
}

struct Parsed {
  const ScheduleDef* def;
  Unit unit;
  double length = 0;
  ir::Attrs attrs;
};

Parsed parse(const ScheduleSpec& spec) {
  Parsed parsed{&row_named("schedule", schedules(), spec.name), {}, 0, {}};
  parsed.unit = split_unit(spec);
  AttrList given = parsed.unit.rest;
  if (spec.name == "piecewise") {
    given.emplace_back("at", parsed.unit.length);  // the unit's key holds the boundaries
  } else {
    parsed.length = as_number(parsed.unit.name, parsed.unit.length);
    if (!(parsed.length > 0)) {
      fail("attribute.range", fmt::format("'{}' must be > 0, got {}", parsed.unit.name, parsed.length));
    }
  }
  parsed.attrs = ir::Attrs(parsed.def->attributes, given);
  if (spec.name == "piecewise") {
    const Reals& at = parsed.attrs.reals("at");
    if (parsed.attrs.reals("values").size() != at.size() + 1) {
      fail("schedule.piecewise", fmt::format("'values' must have one entry more than '{}'", parsed.unit.name));
    }
    for (std::size_t i = 1; i < at.size(); ++i) {
      if (!(at[i - 1] < at[i])) fail("schedule.piecewise", fmt::format("'{}' must increase", parsed.unit.name));
    }
  }
  return parsed;
}

}  // namespace

const std::vector<ScheduleDef>& schedules() {
  static const std::vector<ScheduleDef> table = {
      {{"constant", "the same number", {real("value", "the number")}}, constant},
      {{"linear", "from `from` to `to` over the length, then `to`", {real("from", "at first"), real("to", "at last")}},
       linear},
      {{"cosine",
        "from + (to - from) (1 - cos(pi t / length)) / 2, then `to`",
        {real("from", "at first"), real("to", "at last")}},
       cosine},
      {{"step", "from * factor^floor(t / length)", {real("from", "at first"), positive("factor", "each time")}}, step},
      {{"exponential", "from * factor^(t / length)", {real("from", "at first"), positive("factor", "over the length")}},
       exponential},
      {{"piecewise",
        "values[i] from the i-th boundary on; the unit's key lists the boundaries",
        {{"values", Reals{}, "one more than boundaries", true},
         {"at", Reals{}, "boundaries, given as steps or epochs", true}}},
       piecewise},
  };
  return table;
}

ir::AttrSchema schedule_keys(const ScheduleDef& schedule) {
  ir::AttrSchema keys;
  AttrValue length = 0.0;
  std::string_view doc = "the length; one of steps and epochs";
  for (const ir::AttrDef& def : schedule.attributes) {
    if (def.name != "at") {
      keys.push_back(def);
      continue;
    }
    length = Reals{};  // the unit's key holds the boundaries
    doc = "the boundaries, increasing; one of steps and epochs";
  }
  for (const std::string_view unit : {"steps", "epochs"}) keys.push_back({unit, length, doc});
  keys.push_back({"warmup", 0.0, "rises linearly from 0 over so many of the unit first", false, 0.0});
  return keys;
}

void check_schedule(const ScheduleSpec& spec) {
  parse(spec);
}

NodeId schedule_value(NodeFactory& f, const ScheduleSpec& spec, NodeId step,
                      const std::function<NodeId()>& epoch_steps) {
  const Parsed parsed = parse(spec);
  NodeId time = make::cast(f, step, DType::f32);
  if (parsed.unit.name == "epochs") time = make::div(f, time, epoch_steps());
  const double warmup = parsed.unit.warmup;
  if (warmup == 0) return parsed.def->build(f, parsed.attrs, time, parsed.length);

  const NodeId after = f.add("maximum", {make::sub(f, time, number(f, warmup)), number(f, 0)});
  return make::mul(f, parsed.def->build(f, parsed.attrs, after, parsed.length), progress(f, time, warmup));
}

}  // namespace graphrun
