// exchange_kernels.h: all-reduces of the tile headers on a device (emulation/exchange_cases.h), of all three scopes.
// Contract: needs a device; ExchangeRun says what CUDA said. Leaves to others: which totals are right.
#pragma once

#include <string>
#include <vector>

struct ExchangeCase {
  int values, threads, cluster, clusters;
};
const std::vector<ExchangeCase>& exchange_cases();

struct ExchangeRun {
  std::string error;          // of CUDA, or ""
  bool fits = true;           // whether the device has clusters, and place for all blocks at a time
  unsigned fault = 0;         // what was waited for in a wait that gave up
  double seconds = 0;         // of the launch
  std::vector<float> totals;  // (epoch, block, value)
};
// The last block takes no part in the last epoch, when `silent`.
ExchangeRun run_exchange(std::size_t index, unsigned epochs, bool silent = false);
