#include "session/compiling/tilings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace graphrun {
namespace {

constexpr std::string_view kTiles[] = {"thread", "warp", "block", "pair", "split"};

std::string_view tile_of(std::string_view name) {
  return name.substr(0, name.find(':'));
}
bool is_size(std::string_view text) {  // 512x2x66
  int numbers = 0;
  for (std::size_t at = 0; at <= text.size(); ++numbers) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const std::string_view number = text.substr(at, end - at);
    if (number.empty() || number.size() > 4 || number.find_first_not_of("0123456789") != std::string_view::npos)
      return false;
    at = end + 1;
  }
  return numbers == 3;
}

}  // namespace

std::string tiling_name(const Tiling& tiling) {
  const auto* step = std::get_if<StepTiling>(&tiling);
  if (step == nullptr) return {};
  return fmt::format("{}:{}x{}x{}", kTiles[static_cast<std::size_t>(step->tile)], step->threads, step->cluster,
                     step->clusters);
}

WantedTiling::WantedTiling(std::string_view name) : name_(name) {
  if (name.empty()) return;
  const bool known = std::ranges::find(kTiles, tile_of(name)) != std::end(kTiles);
  const std::size_t colon = name.find(':');
  if (known && (colon == std::string_view::npos || is_size(name.substr(colon + 1)))) return;
  throw Error(
      ErrorKind::input, "tiling.name", fmt::format("there is no tiling '{}'", name),
      "thread, pair, warp, block, split, or one as `graphrun plan` lists them: warp:512x2x66 has 512 threads a block, "
      "2 blocks a "
      "cluster, 66 clusters");
}

bool WantedTiling::is(const RegionChoice& choice) const {
  const std::string name = tiling_name(choice.tiling);
  return (name_.find(':') == std::string::npos ? tile_of(name) : std::string_view(name)) == name_;
}

void WantedTiling::choose(RegionPlan& plan) const {
  if (name_.empty() || !plan.yes) return;
  const auto found = std::ranges::find_if(plan.choices, [&](const RegionChoice& choice) { return is(choice); });
  if (found != plan.choices.end()) plan.tiling = found->tiling;
}

void WantedTiling::check(std::span<const std::vector<RegionChoice>> regions) const {
  if (name_.empty()) return;
  std::vector<std::string> offered;
  for (const std::vector<RegionChoice>& region : regions) {
    for (const RegionChoice& choice : region) {
      if (is(choice)) return;
      std::string name = tiling_name(choice.tiling);
      if (std::ranges::find(offered, name) == offered.end()) offered.push_back(std::move(name));
    }
  }
  if (offered.empty())
    throw Error(ErrorKind::input, "tiling.unknown",
                fmt::format("no region of the model is tiled for a GPU: there is no tiling '{}'", name_),
                "`graphrun plan` lists the regions, and why other steps are not in one");
  throw Error(ErrorKind::input, "tiling.unknown", fmt::format("no region can be tiled '{}'", name_),
              fmt::format("there are {}", fmt::join(offered, ", ")));
}

}  // namespace graphrun
