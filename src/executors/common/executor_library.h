// executor_library.h: entry point of an executor that is built with this library but loaded at run time
// (libgraphrun_cuda.so).
// Contract: C++ objects cross it, so both sides come from one build. The version identifies the build: increase it with
// every change to a struct or virtual function that crosses. Not here: executors of others
// (graphrun/executor_plugin_c.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "graphrun/executor.h"

namespace graphrun {

inline constexpr std::uint32_t kExecutorLibraryVersion = 13;

// Exported as extern "C" const graphrun::ExecutorLibrary* graphrun_executor_library().
struct ExecutorLibrary {
  std::uint32_t version = kExecutorLibraryVersion;  // stays first
  // `argument` follows the colon: "1" of "cuda:1"; may be empty. Throws Error.
  std::unique_ptr<Executor> (*create)(std::string_view argument) = nullptr;
};

}  // namespace graphrun
