// open.h: opens the Session of a verb that runs a model.
// Contract: warnings of the data, and what executor "auto" measured, go to stderr. Throws Error.
#pragma once

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "cli/terminal/output_files.h"
#include "cli/training/allocations.h"
#include "graphrun/session.h"

namespace graphrun::cli {

// load_model(); `how` in place of arguments.load.
Model read_model(const Arguments& arguments, Diagnostics& diagnostics);
Model read_model(const Arguments& arguments, const LoadOptions& how, Diagnostics& diagnostics);

// `load_seconds` gets how long reading the model and its data took; none of `outputs` may be
// among what is read.
Session open_session(const Arguments& arguments, Diagnostics& diagnostics, double* load_seconds = nullptr,
                     const OutputFiles* outputs = nullptr);

// The same of a model that has been read.
Session open_session(Model model, const Arguments& arguments, Diagnostics& diagnostics);

// With --verbose: splits, arena, phases.
void describe(const Session& session, Diagnostics& diagnostics);

// The end of --assert-no-alloc: a note when there were none of ours, else throws Error (kind check).
void report_allocations(const AllocationWatch& watch, Diagnostics& diagnostics);

}  // namespace graphrun::cli
