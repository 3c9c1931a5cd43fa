#include "cli/training/certificate.h"

#include <sys/resource.h>

#include <span>
#include <string_view>

#include "base/json_writer.h"
#include "graphrun/checkpoint.h"

namespace graphrun::cli {
namespace {

constexpr std::string_view kCountedHost =
    "malloc, calloc, realloc, memalign, aligned_alloc and posix_memalign, which operator new calls, in the program and "
    "all its libraries, on every thread: the program replaces these functions";
constexpr std::string_view kCountedDevices =
    "each call of an executor that allocates on a device or pinned memory on the host, as it reports them";
constexpr std::string_view kCountedDrivers = "calls from a library of the GPU driver, counted separately";

constexpr std::string_view kMemories[] = {"host", "pinned", "device"};

std::string_view memory_of(std::string_view api) {
  for (const std::string_view name : {"malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"}) {
    if (api == name) return kMemories[0];
  }
  return api.find("Host") != std::string_view::npos ? kMemories[1] : kMemories[2];
}

void write_counts(JsonWriter& json, std::span<const AllocationCount> counts) {
  for (const std::string_view memory : kMemories) {
    std::uint64_t calls = 0, bytes = 0;
    for (const AllocationCount& count : counts) {
      if (memory_of(count.api) != memory) continue;
      calls += count.calls;
      bytes += count.bytes;
    }
    json.key(memory).begin_object().member("calls", calls).member("bytes", bytes).end_object();
  }
  json.key("by_call").begin_object();
  for (const AllocationCount& count : counts)
    json.key(count.api).begin_object().member("calls", count.calls).member("bytes", count.bytes).end_object();
  json.end_object();
}

}  // namespace

std::string certificate(const Session& session, const Results& results, const AllocationWatch& watch) {
  const TrainResult& training = *results.training;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  JsonWriter json;
  json.begin_object();
  json.member("format", 1).member("version", GRAPHRUN_VERSION);
  json.member("model", results.model).member("executor", results.executor);
  json.member("holds", watch.ours() == 0);
  json.key("before").begin_object().member("step", training.first_step + 1);
  write_counts(json, AllocationWatch::of_setup());
  json.end_object();
  json.key("during").begin_object();
  json.member("first_step", training.first_step + 2).member("last_step", training.steps);
  write_counts(json, AllocationWatch::of_steps());
  json.member("drivers", watch.drivers()).end_object();
  json.key("counted").begin_object();
  json.member("host", kCountedHost)
      .member("device_and_pinned", kCountedDevices)
      .member("drivers", kCountedDrivers)
      .end_object();
  json.member("arena_bytes", results.arena_bytes);
  json.member("peak_rss_bytes", static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
  json.member("model_hash", model_hash(session.model())).member("plan_hash", plan_hash(session.program()));
  json.member("weights_hash", results.weights_hash);
  return json.end_object().text() + "\n";
}

}  // namespace graphrun::cli
