// host.h: description of the host machine for `graphrun devices`.
// Contract: fields that the system does not report are empty or 0.
#pragma once

#include "graphrun/executor.h"

namespace graphrun {

Device describe_host();

}  // namespace graphrun
