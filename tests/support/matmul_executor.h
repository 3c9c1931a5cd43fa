// matmul_executor.h: examples/matmul_executor.cpp linked into this process: an executor with one kernel of its own.
#pragma once

#include <memory>

#include "graphrun/executor.h"

namespace graphrun::test {

std::shared_ptr<Executor> matmul_executor();

}  // namespace graphrun::test
