// old_library.cpp: an executor library of another build. Nothing but its version may be read.
#include "executors/common/executor_library.h"

extern "C" __attribute__((visibility("default"))) const std::uint32_t* graphrun_executor_library() {
  static const std::uint32_t version = graphrun::kExecutorLibraryVersion - 1;
  return &version;
}
