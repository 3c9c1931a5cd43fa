#include "cli/plans/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/pictures/html.h"
#include "cli/plans/plan_picture.h"
#include "cli/plans/plan_summary.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "plot/render.h"

namespace graphrun::cli {
namespace {

using TableRows = std::vector<std::vector<std::string>>;

std::string buffers_table(const Program& program, const std::vector<BufferId>& buffers, std::string_view caption) {
  constexpr std::size_t kRows = 10;
  TableRows rows = {{"value", "kind", "type", "bytes", "offset"}};
  for (std::size_t i = 0; i < std::min(kRows, buffers.size()); ++i) {
    const Buffer& b = program.buffers[buffers[i]];
    rows.push_back({b.name, std::string(name_of(b.kind)), stored_type(b), grouped(b.bytes), grouped(b.offset)});
  }
  const std::size_t more = buffers.size() - (rows.size() - 1);
  return html::table(more == 0 ? std::string(caption) : fmt::format("{}; {} more are smaller", caption, grouped(more)),
                     rows);
}

}  // namespace

std::string plan_page(const Program& program, std::string_view executor, std::uint64_t without_regions,
                      std::uint64_t without_regions_and_reuse) {
  const PlanSummary summary = summary_of(program);
  const std::string title = fmt::format("Memory plan of {} on {}", program.name, executor);
  std::string body = fmt::format("<h1>{}</h1>\n<p class=\"quiet\">target {}</p>\n<ul class=\"figures\">\n",
                                 html::escaped(title), html::escaped(program.target));
  const auto figure = [&](std::string_view name, const std::string& value) {
    body += fmt::format("<li>{}<b>{}</b></li>\n", name, html::escaped(value));
  };
  figure("arena", human_bytes(program.arena_bytes));
  figure("lower bound", human_bytes(program.lower_bound));
  figure("arena / lower bound", fmt::format("{:.4f}", over_lower_bound(program)));
  figure("peak", human_bytes(summary.peak.bytes));
  body += "</ul>\n";
  body += html::section("Offsets over time",
                        html::picture(plot::as_svg(plan_picture(program, executor)),
                                      "Live ranges of values as rectangles: time from left to right, offset upwards"));
  TableRows classes = {{"kind", "bytes", "buffers"}};
  for (const ClassTotal& total : summary.classes) {
    if (total.buffers == 0) continue;
    classes.push_back({std::string(name_of(total.kind)), grouped(total.bytes), grouped(total.buffers)});
  }
  body += html::section(
      "Bytes by class",
      html::table("Activations and workspace share addresses: they may add up to more than the arena", classes));
  if (!summary.peak.step.empty())
    body += html::section("The peak", fmt::format("<p>Step {} of {}, {}, with {} of states.</p>\n", summary.peak.at + 1,
                                                  html::escaped(summary.peak.phase), html::escaped(summary.peak.step),
                                                  human_bytes(summary.peak.state_bytes)) +
                                          buffers_table(program, summary.peak.live, "Other live values"));
  body += html::section("The largest values", buffers_table(program, summary.largest, "In the arena"));
  body +=
      html::section("Savings by reuse and regions",
                    html::table("Bytes of the arena",
                                {{"", "with reuse", "without reuse"},
                                 {"as planned", grouped(program.arena_bytes), grouped(summary.bytes_without_reuse)},
                                 {"without regions", grouped(without_regions), grouped(without_regions_and_reuse)}}));
  body += html::section(
      "Outside the arena",
      html::table("Bytes", {{"what", "bytes"},
                            {"pinned mirror of polled values on the host, for a GPU", grouped(summary.poll_bytes)},
                            {"tiles of regions, for each thread of a host", grouped(summary.tile_bytes)}}));
  return html::page(title, body);
}

}  // namespace graphrun::cli
