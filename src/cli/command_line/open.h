// open.h: opens the Session of a verb that runs a model.
// Contract: prints data warnings, and the measurements of executor "auto", to stderr. Throws Error.
#pragma once

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "cli/terminal/output_files.h"
#include "cli/training/allocations.h"
#include "graphrun/session.h"

namespace graphrun::cli {

// Calls load_model(); `how` replaces arguments.load.
Model read_model(const Arguments& arguments, Diagnostics& diagnostics);
Model read_model(const Arguments& arguments, const LoadOptions& how, Diagnostics& diagnostics);

// `load_seconds` receives the time to read the model and its data. Throws Error if one of `outputs` is also an input.
Session open_session(const Arguments& arguments, Diagnostics& diagnostics, double* load_seconds = nullptr,
                     const OutputFiles* outputs = nullptr);

// Same for a model that is already loaded.
Session open_session(Model model, const Arguments& arguments, Diagnostics& diagnostics);

// Prints splits, arena and phases with --verbose.
void describe(const Session& session, Diagnostics& diagnostics);

// Ends --assert-no-alloc: prints a note if graphrun allocated nothing, else throws Error (kind check).
void report_allocations(const AllocationWatch& watch, Diagnostics& diagnostics);

}  // namespace graphrun::cli
