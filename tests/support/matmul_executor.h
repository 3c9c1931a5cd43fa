// matmul_executor.h: examples/matmul_executor.cpp, in this process: an executor that has one kernel of its own.
#pragma once

#include <memory>

#include "graphrun/executor_plugin.h"

extern "C" const graphrun::ExecutorPlugin* graphrun_executor_plugin();

namespace graphrun::test {

inline std::shared_ptr<Executor> matmul_executor() {
  return graphrun_executor_plugin()->create({});
}

}  // namespace graphrun::test
