// devices.cpp: the verb `devices`: devices of each executor on this machine, or the reason why it has none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/command_line/verbs.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"

namespace graphrun::cli {
namespace {

struct Found {
  std::string executor;
  DeviceList list;
};

std::vector<Found> look() {
  std::vector<Found> found;
  for (const std::string& name : executor_names()) {
    Found one{name, {}};
    try {
      one.list = find_executor(name)->devices();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      one.list.missing = error.diagnostics().front().message;
    }
    if (one.list.devices.empty() && one.list.missing.empty()) {  // a plug-in without a list
      Device& device = one.list.devices.emplace_back();
      device.id = name;
      device.name = "a plug-in";
    }
    found.push_back(std::move(one));
  }
  for (RejectedPlugin& rejected : rejected_plugins())
    found.push_back({printable(rejected.path), {{}, "not used: " + rejected.reason}});
  return found;
}

std::string as_json(const std::vector<Found>& found) {
  JsonWriter json;
  json.begin_object().key("devices").begin_array();
  for (const Found& one : found) {
    for (const Device& device : one.list.devices) {
      json.begin_object().member("id", device.id).member("executor", one.executor).member("name", device.name);
      json.member("capability", device.capability).member("units", device.units).member("driver", device.driver);
      json.member("memory_free", device.memory_free).member("memory_total", device.memory_total).end_object();
    }
  }
  json.end_array().key("missing").begin_array();
  for (const Found& one : found) {
    if (one.list.missing.empty()) continue;
    json.begin_object().member("executor", one.executor).member("reason", one.list.missing).end_object();
  }
  return json.end_array().end_object().text() + "\n";
}

// Known properties; a plug-in may omit some.
std::string details(const Device& device, std::string_view executor) {
  std::vector<std::string> parts;
  if (!device.capability.empty()) parts.push_back(device.capability);
  if (device.units > 0) {
    parts.push_back(fmt::format("{} {}", device.units,
                                executor == "cuda"  ? "multiprocessors"
                                : device.units == 1 ? "thread"
                                : executor == "cpu" ? "cores"
                                                    : "units"));
  }
  if (device.memory_total > 0) {
    constexpr double gib = 1024.0 * 1024.0 * 1024.0;
    parts.push_back(fmt::format("{:.1f} of {:.1f} GiB free", static_cast<double>(device.memory_free) / gib,
                                static_cast<double>(device.memory_total) / gib));
  }
  if (!device.driver.empty()) parts.push_back("driver for " + device.driver);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string as_text(const std::vector<Found>& found) {
  std::string text;
  for (const Found& one : found) {
    for (const Device& device : one.list.devices) {
      text += fmt::format("{:<9} {}\n", device.id, device.name);
      const std::string more = details(device, one.executor);
      if (!more.empty()) text += fmt::format("{:<10}{}\n", "", more);
    }
    if (!one.list.missing.empty()) text += fmt::format("{:<9} missing: {}\n", one.executor, one.list.missing);
  }
  return text;
}

int run_devices(const Arguments& arguments, Diagnostics&) {
  const std::vector<Found> found = look();
  write_results(arguments.json ? as_json(found) : as_text(found));
  return kDone;
}

}  // namespace

const Verb devices_verb = {
    "devices",
    "device-query",
    Positionals::none,
    "list the devices of every executor",
    R"(Prints the devices of each executor: name for --executor, free and total memory, capability and driver. If an
executor has no device, or if a plug-in in the folders of --plugin-path is unusable, one line states the
reason. The exit code is always 0. With --json, stdout is one object with the arrays devices and missing.)",
    R"(graphrun devices
graphrun devices --json)",
    run_devices};

}  // namespace graphrun::cli
