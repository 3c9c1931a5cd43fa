// abi_plugin.cpp: a plug-in that tells when it is called: who must not call it has then been caught.
#include <stdexcept>

#include "graphrun/executor_plugin.h"

#ifndef PLUGIN_ABI
#define PLUGIN_ABI graphrun::kExecutorAbi
#endif

extern "C" GRAPHRUN_API const graphrun::ExecutorPlugin* graphrun_executor_plugin() {
  static const graphrun::ExecutorPlugin plugin{
      sizeof(graphrun::ExecutorPlugin), PLUGIN_ABI,
      [](std::string_view) -> std::unique_ptr<graphrun::Executor> { throw std::runtime_error("create() was called"); }};
  return &plugin;
}
