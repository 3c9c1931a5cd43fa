// views.h: the studio's views of a model apart from training: graph, values, memory plan, verification.
// Contract: each view has the content of the corresponding verb for the same arguments, as JSON or SVG. Belongs to the
// helper's thread, which caches the latest expensive results. Throws Error.
#pragma once

#include <optional>
#include <string>

#include "cli/command_line/arguments.h"
#include "cli/stored_runs/run_cache.h"
#include "graphrun/inspection.h"

namespace graphrun::cli {

struct StudioViews {
  std::optional<Inspection> inspection;  // made by values()
  std::string graph_svg, plan_svg;       // made by graph() and plan()
  RunCache stored_runs;
  std::string runs_json;  // JSON of stored_runs

  std::string check(const Arguments& arguments);   // summary of the model, its settings and its graph
  std::string plan(const Arguments& arguments);    // arena blocks with live ranges, phases, regions
  std::string values(const Arguments& arguments);  // statistics of every value and gradient over a batch
  // Bytes, time and difference from `ref` of every value and gradient.
  static std::string costs(const Arguments& arguments);
  std::string value_svg(const std::string& name, bool as_histogram) const;
  static std::string verified(const Arguments& arguments);
  static std::string written(const Arguments& arguments);  // --output of arguments.verb
  void read_runs(const std::string& folder);               // reads for a short time; RunCache::unread() counts the rest
  std::string runs(const std::string& folder);
};

}  // namespace graphrun::cli
