// matmul_executor.h: executor with one kernel of its own, matrix products; all other ops fall back to the library.
#pragma once

#include <memory>

#include "graphrun/executor.h"

namespace graphrun::test {

std::shared_ptr<Executor> matmul_executor();

}  // namespace graphrun::test
