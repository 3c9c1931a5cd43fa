#include "graphrun/target.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

// From NVIDIA's CUDA programming guide (table of technical specifications) and the data sheets of the boards. Shared
// memory is what one block may opt in to. h100 is the SXM board; h200 has the same chip and other memory. A tile on a
// host should fit the first- or second-level cache of a core of the last ten years (docs/notes/2026-11-21-regions.md).
constexpr Target kTargets[] = {
    // name, executor, capability, SMs, threads/SM, shared bytes, registers/SM, cluster, library workspace, tile
    {"host", "cpu", 0, 0, 0, 0, 0, 0, 0, 64 * kKiB},
    {"h200", "cuda", 90, 132, 2048, 232448, 65536, 8, 32 * kMiB, 232448},
    {"h100", "cuda", 90, 132, 2048, 232448, 65536, 8, 32 * kMiB, 232448},
    {"a100", "cuda", 80, 108, 2048, 166912, 65536, 0, 32 * kMiB, 166912},
    {"l4", "cuda", 89, 58, 1536, 101376, 65536, 0, 32 * kMiB, 101376},
};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

const Target& find_target(std::string_view name) {
  std::vector<std::string> known;
  for (const Target& target : kTargets) {
    if (target.name == name) return target;
    known.emplace_back(target.name);
  }
  const std::string near = nearest_name(name, known);
  throw Error(ErrorKind::input, "target.unknown",
              fmt::format("unknown target '{}'; the targets are {}", name, fmt::join(known, ", ")),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

}  // namespace graphrun
