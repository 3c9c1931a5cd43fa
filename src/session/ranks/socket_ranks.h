// socket_ranks.h: a Communicator over connected sockets: every rank is connected to rank 0.
// Contract: communicator.h. Messages carry a number and their size; a peer that sends anything else is lost. With
// rings, messages go through memory; the sockets report errors and ranks that are gone. Not here: connecting
// (rendezvous.cpp).
#pragma once

#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "graphrun/communicator.h"
#include "session/ranks/shared_rings.h"

namespace graphrun {

// `peers`: on rank 0 the sockets of ranks `first`, `first` + 1, ...; on others the one of rank 0. They block.
std::shared_ptr<Communicator> socket_ranks(int rank, int ranks, std::vector<Descriptor> peers, int first = 1,
                                           std::shared_ptr<SharedRings> rings = nullptr);

// A collective call: continues with rings if all ranks are on one host, unless GRAPHRUN_TRANSPORT is tcp on one of
// them.
void share_memory(Communicator& sockets);

}  // namespace graphrun
