// socket_ranks.h: a Communicator over connected sockets: every rank is connected to rank 0.
// Contract: communicator.h. Messages carry a number and their size; a peer that sends anything else is lost. Not here:
// connecting (rendezvous.cpp).
#pragma once

#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "graphrun/communicator.h"

namespace graphrun {

// `peers`: on rank 0 the sockets of ranks `first`, `first` + 1, ...; on others the one of rank 0. They block.
std::shared_ptr<Communicator> socket_ranks(int rank, int ranks, std::vector<Descriptor> peers, int first = 1);

}  // namespace graphrun
