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

struct ScheduleDef : Entry {
  // `time` is an f32 scalar >= 0 in the schedule's unit, `length` what the unit's key says (for piecewise: 0).
  ir::NodeId (*build)(NodeFactory& make, const ir::Attrs& attrs, ir::NodeId time, double length);
};

const std::vector<ScheduleDef>& schedules();

// What the schedule's object may hold in a model file: its attributes, the unit of its length, and warmup.
ir::AttrSchema schedule_keys(const ScheduleDef& schedule);

// Throws Error (kind input) when the spec has no or two units, or attributes that the schedule does not know.
void check_schedule(const ScheduleSpec& spec);

// The number at this step: `step` is the u64 counter, `epoch_steps` gives the f32 scalar of the steps of an epoch, and
// is called where the unit is epochs.
ir::NodeId schedule_value(NodeFactory& make, const ScheduleSpec& spec, ir::NodeId step,
                          const std::function<ir::NodeId()>& epoch_steps);

}  // namespace graphrun
