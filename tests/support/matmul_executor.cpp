#include "support/matmul_executor.h"

#include "graphrun/executor_plugin.h"

extern "C" const graphrun::ExecutorPlugin* graphrun_executor_plugin();

namespace graphrun::test {

std::shared_ptr<Executor> matmul_executor() {
  return graphrun_executor_plugin()->create({});
}

}  // namespace graphrun::test
