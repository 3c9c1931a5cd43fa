// schedules.h: numbers that change over training, as functions of the step counter.
// Contract: a schedule's length is given in exactly one unit, "steps" or "epochs"; time runs on within an epoch.
// `warmup`, in the same unit, raises the number linearly from 0 before anything else. Adding one is one build function
// and one row of the table.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "graph/frontend/library/entry.h"
#include "graph/ops/op_def.h"
#include "graphrun/model.h"

namespace graphrun {

struct ScheduleCall {
  const ir::Attrs& attrs;
  std::string_view unit;  // the key that says the length: "steps" or "epochs"
  Var time;               // f32 scalar >= 0, in that unit
};

struct ScheduleDef : Entry {  // its attributes: its own, the units, and warmup
  Var (*build)(const ScheduleCall& call);
};

const std::vector<ScheduleDef>& schedules();

// Throws Error (kind input) when the spec has no or two units, or attributes that the schedule does not know.
void check_schedule(const ScheduleSpec& spec);

// When it has come to 0 for good, or below; nothing: it never does.
struct ScheduleEnd {
  double time = 0, warmup = 0;  // in the unit; the warmup is a part of the time
  std::string_view unit = {};   // "steps" or "epochs"
};
std::optional<ScheduleEnd> end_at_zero(const ScheduleSpec& spec);

// The number at this step: `step` is the u64 counter, `epoch_steps` gives the f32 scalar of the steps of an epoch, and
// is called where the unit is epochs.
ir::NodeId schedule_value(NodeFactory& make, const ScheduleSpec& spec, ir::NodeId step,
                          const std::function<ir::NodeId()>& epoch_steps);

}  // namespace graphrun
