// train_many.h: trains several sessions at a time, such as the networks of an ensemble or the settings of a sweep.
// Contract: each session ends with the bits of Session::train() on its own, whatever the others do. A failure of one
// network does not affect the others. The sessions belong to this call until it returns, except cancel() and step().
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "graphrun/session.h"

namespace graphrun {

// Answer to a report: training resumes, or ends for this network or for all.
enum class AfterReport : std::uint8_t { resume, stop, stop_all };

struct TrainManyOptions {
  // Sessions that train concurrently, each in a thread of its own; 0: one per core. Open sessions on the CPU with
  // SessionOptions::threads = 1. On a GPU, small networks share launches if they were opened on one custom_executor
  // after its share_launches(); then train as many as that returns.
  std::size_t at_once = 0;
  // Called in the thread that calls train_many(), one call at a time. The network waits meanwhile; the callback may
  // read, predict and evaluate its session, no other one. An exception ends all training; train_many() throws it.
  std::function<AfterReport(std::size_t network, const Report&)> on_report = {};
};

struct NetworkResult {
  TrainResult training;           // without losses; `cancelled` also if stop_all came before its first step
  std::exception_ptr error = {};  // exception of Session::train(), such as NotFinite; null: none
};

// Trains each session for its model's epochs and returns the results in the order of `sessions`. Throws Error (kind
// input) if one is null or is given twice; kind run if no thread can be created.
GRAPHRUN_API std::vector<NetworkResult> train_many(std::span<Session* const> sessions,
                                                   const TrainManyOptions& options = {});

}  // namespace graphrun
