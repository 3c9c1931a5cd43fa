// agreement.h: the decisions that ranks have to take together.
// Contract: every rank calls each function at the same points of the same training. `communicator` may be null: there
// is one rank. Throws Error (kind device or input) on all ranks alike.
#pragma once

#include <cstdint>
#include <string_view>

#include "graphrun/communicator.h"
#include "graphrun/model.h"
#include "graphrun/program.h"

namespace graphrun {

// Throws Error that names what differs between the ranks: version, executor, model and data, or plan.
void check_same_training(Communicator* communicator, const Model& model, const Program& program,
                         std::string_view executor);

// Whether any rank was asked to cancel. Throws Error if the ranks have not finished equally many steps.
bool agreed_cancel(Communicator* communicator, bool cancelled, std::uint64_t steps);

// The number that rank 0 gives.
std::uint64_t agreed_number(Communicator* communicator, std::uint64_t number);

}  // namespace graphrun
