// host.h: the machine this runs on, as `graphrun devices` tells of it.
// Contract: what the system does not say is left empty or 0.
#pragma once

#include "graphrun/executor.h"

namespace graphrun {

Device describe_host();

}  // namespace graphrun
