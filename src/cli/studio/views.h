// views.h: what the studio shows of a model beside its training: graph, values, memory plan, verification.
// Contract: each is what the verb of that name says of the same arguments, as JSON or SVG. Belongs to the helper's
// thread, which keeps the latest of what is costly. Throws Error.
#pragma once

#include <optional>
#include <string>

#include "cli/command_line/arguments.h"
#include "cli/stored_runs/run_cache.h"
#include "graphrun/inspection.h"

namespace graphrun::cli {

struct StudioViews {
  std::optional<Inspection> inspection;  // that values() made
  std::string graph_svg, plan_svg;       // that graph() and plan() made
  RunCache stored_runs;
  std::string runs_json;  // of them

  std::string check(const Arguments& arguments);   // a summary of the model, its settings and its graph
  std::string plan(const Arguments& arguments);    // blocks of the arena with their times, phases, regions
  std::string values(const Arguments& arguments);  // statistics of every value and gradient over a batch
  // Of every value and gradient: bytes, time, and how far it is from `ref`.
  static std::string costs(const Arguments& arguments);
  std::string value_svg(const std::string& name, bool as_histogram) const;
  static std::string verified(const Arguments& arguments);
  static std::string predicted(const Arguments& arguments);
  void read_runs(const std::string& folder);  // for a moment: of many there may be more (RunCache::unread())
  std::string runs(const std::string& folder);
};

}  // namespace graphrun::cli
