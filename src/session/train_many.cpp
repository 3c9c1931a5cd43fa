#include "graphrun/train_many.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "base/at_once.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"

namespace graphrun {

std::vector<NetworkResult> train_many(std::span<Session* const> sessions, const TrainManyOptions& options) {
  for (auto one = sessions.begin(); one != sessions.end(); ++one) {
    if (*one != nullptr && std::find(sessions.begin(), one, *one) == one) continue;
    throw Error(ErrorKind::input, "train_many.session",
                fmt::format("session {} is {}", one - sessions.begin(), *one == nullptr ? "null" : "given twice"),
                "open a session for each network");
  }
  std::vector<NetworkResult> results(sessions.size());
  std::atomic<bool> stopped{false};
  std::exception_ptr thrown;
  const auto stop_all = [&] {
    stopped = true;
    for (Session* session : sessions) session->cancel();
  };
  const auto report = [&](std::size_t network, const Report& given) {
    if (stopped) return;
    try {
      const AfterReport next = options.on_report(network, given);
      if (next == AfterReport::stop) sessions[network]->cancel();
      if (next == AfterReport::stop_all) stop_all();
    } catch (...) {
      thrown = std::current_exception();
      stop_all();
    }
  };
  const Job job = [&](std::size_t network, const RunInCaller& run_in_caller) {
    Session& session = *sessions[network];
    NetworkResult& to = results[network];
    try {
      to.training.steps = to.training.first_step = session.step();
      to.training.cancelled = stopped;
      if (to.training.cancelled) return;
      TrainOptions one;
      one.keep_losses = false;
      one.on_first_step = [&] {
        if (stopped) session.cancel();  // stop_all() came before train() began
      };
      if (options.on_report) {
        one.on_report = [&](const Report& given) {
          const auto call = [&] { report(network, given); };
          run_in_caller(std::ref(call));  // allocates nothing
        };
      }
      to.training = session.train(one);
    } catch (...) {
      to.error = std::current_exception();
    }
  };
  const auto cores = [] { return static_cast<std::size_t>(find_executor("cpu")->devices().devices.at(0).units); };
  run_at_once(sessions.size(), options.at_once > 0 ? options.at_once : cores(), job, {});
  if (thrown) std::rethrow_exception(thrown);
  return results;
}

}  // namespace graphrun
