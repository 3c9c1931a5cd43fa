#include "cli/plans/plan_buffers.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/json_writer.h"
#include "cli/command_line/diagnostics.h"
#include "cli/plans/buffer_table.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/result_file.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/packing.h"

namespace graphrun::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Packed {
  BlockPacking packing;
  double seconds = 0;
  bool fits = true;  // true without a capacity
};

Packed packed(const BufferTable& table, const Arguments& arguments) {
  const Interruptible interruptible;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  PackingSearch search;
  search.capacity = arguments.plan.capacity;
  search.steps = std::numeric_limits<std::uint64_t>::max();
  search.stop = [&] { return interrupted() || seconds() >= arguments.plan.time_limit; };
  Packed result{pack_blocks(table.blocks, search), 0, true};
  result.seconds = seconds();
  result.fits = !arguments.plan.capacity || result.packing.height <= *arguments.plan.capacity;
  const std::string fault = check_packing(table.blocks, result.packing);
  if (!fault.empty()) throw std::logic_error("plan --buffers: " + fault);
  return result;
}

std::string as_text(const BufferTable& table, const Packed& packed, const Arguments& arguments) {
  std::string text =
      paint(stdout, Style::bold,
            fmt::format("{} {}", grouped(table.blocks.size()), table.blocks.size() == 1 ? "buffer" : "buffers")) +
      "\n";
  const auto line = [&](std::string_view label, std::string_view content) {
    text += fmt::format("{:<12}  {}\n", label, content);
  };
  line("height", human_bytes(packed.packing.height));
  line("lower bound", human_bytes(packed.packing.lower_bound));
  line("proven", packed.packing.is_optimal()
                     ? "optimal"
                     : fmt::format("at least {} are needed", human_bytes(packed.packing.proven)));
  if (arguments.plan.capacity)
    line("capacity",
         fmt::format("{}: {}", human_bytes(*arguments.plan.capacity), packed.fits ? "fits" : "does not fit"));
  line("seconds", fmt::format("{:.3f}", packed.seconds));
  return text;
}

std::string as_json(const BufferTable& table, const Packed& packed, const Arguments& arguments) {
  JsonWriter json;
  json.begin_object().member("buffers", table.blocks.size()).member("height", packed.packing.height);
  json.member("lower_bound", packed.packing.lower_bound).member("proven", packed.packing.proven);
  json.member("optimal", packed.packing.is_optimal());
  if (arguments.plan.capacity) json.member("capacity", *arguments.plan.capacity).member("fits", packed.fits);
  json.member("seconds", packed.seconds).end_object();
  return json.text() + "\n";
}

[[noreturn]] void reject(const Packed& packed, const Arguments& arguments) {
  const BlockPacking& packing = packed.packing;
  if (packing.proven > *arguments.plan.capacity)
    throw Error(
        ErrorKind::check, "buffers.capacity",
        fmt::format("no packing fits {} bytes: at least {} are needed", *arguments.plan.capacity, packing.proven));
  throw Error(ErrorKind::check, "buffers.capacity",
              fmt::format("no packing of at most {} bytes was found in {:.3g} s; the best has {}",
                          *arguments.plan.capacity, packed.seconds, packing.height),
              "--time-limit gives the search more time");
}

}  // namespace

int plan_buffers(const Arguments& arguments) {
  ResultFile file(arguments.output, "buffers.write", {arguments.plan.buffers},
                  "an output cannot replace a file that the run reads or writes elsewhere");
  const BufferTable table = read_buffers(arguments.plan.buffers);
  const Packed result = packed(table, arguments);
  if (!result.fits && !interrupted()) reject(result, arguments);
  if (!file.is_stdout() && result.fits) file.write(as_csv(table, result.packing.offsets));
  write_results(arguments.csv    ? as_csv(table, result.packing.offsets)
                : arguments.json ? as_json(table, result, arguments)
                                 : as_text(table, result, arguments));
  return interrupted() ? kInterrupted : kDone;
}

}  // namespace graphrun::cli
