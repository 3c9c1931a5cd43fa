// certificate.h: --certificate: what a training allocated, and how that was counted, as JSON (command-line.md).
// Contract: it states what was counted, also where that is not nothing. Leaves to others: counting (allocations.h), and
// refusing a training that allocates.
#pragma once

#include <string>

#include "cli/results/results.h"
#include "cli/training/allocations.h"
#include "graphrun/session.h"

namespace graphrun::cli {

// Of a training that has ended, after `results` were evaluated.
std::string certificate(const Session& session, const Results& results, const AllocationWatch& watch);

}  // namespace graphrun::cli
