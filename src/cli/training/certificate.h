// certificate.h: --certificate: allocation counts of a training, and how they were measured, as JSON (command-line.md).
// Contract: reports nonzero counts too. Not handled here: counting (allocations.h), and rejecting a training that
// allocates.
#pragma once

#include <string>

#include "cli/results/results.h"
#include "cli/training/allocations.h"
#include "graphrun/session.h"

namespace graphrun::cli {

// Call after the training has ended and `results` are evaluated.
std::string certificate(const Session& session, const Results& results, const AllocationWatch& watch);

}  // namespace graphrun::cli
