// schedules.h: numbers that change over training, as functions of the step counter.
// Contract: a schedule's length is given in exactly one unit, "steps" or "epochs"; time advances within an epoch.
// `warmup`, in the same unit, first raises the number linearly from 0. A new schedule needs a build function and a row
// of the table.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "graph/frontend/library/entry.h"
#include "graph/ops/op_def.h"
#include "graphrun/model.h"

namespace graphrun {

struct ScheduleDef;
struct ScheduleCall {
  const ScheduleDef* def = nullptr;
  ir::Attrs attrs = {};
  std::string_view unit = {};  // key of the length: "steps" or "epochs"
  Var time = {};               // f32 scalar >= 0, in that unit
};

struct ScheduleDef : Entry {  // attributes include the units and warmup
  Var (*build)(const ScheduleCall& call);
  double (*at)(const ScheduleCall& call, double time);  // same, on the host
};

const std::vector<ScheduleDef>& schedules();

// Throws Error (kind input) if the spec has no unit, two units or an unknown attribute.
void check_schedule(const ScheduleSpec& spec);

// Time from which a schedule stays at 0 or below.
struct ScheduleEnd {
  double time = 0, warmup = 0;  // in the unit; `time` includes the warmup
  std::string_view unit = {};   // "steps" or "epochs"
};
std::optional<ScheduleEnd> end_at_zero(const ScheduleSpec& spec);  // nullopt: never

// The value in a step, computed by the host. The function does not allocate.
std::function<double(double step, double epoch_steps)> schedule_formula(const ScheduleSpec& spec);

// The number at this step. `step` is the u64 counter; `epoch_steps` returns the number of steps per epoch as an f32
// scalar and is called only if the unit is epochs.
ir::NodeId schedule_value(ir::Builder& make, const ScheduleSpec& spec, ir::NodeId step,
                          const std::function<ir::NodeId()>& epoch_steps);

}  // namespace graphrun
