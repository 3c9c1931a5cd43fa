// inspect.cpp: c.h without sessions: verify, devices, help.
#include "base/json_text.h"
#include "c_api/guard.h"
#include "c_api/model.h"
#include "c_api/options.h"
#include "graphrun/executor.h"
#include "graphrun/show.h"

using namespace graphrun;
using c_api::checked;
using c_api::guarded;

gr_error* gr_verify(gr_model* model, const char* options, char** json) {
  return guarded([&] {
    char*& to = checked(json, "json");
    const VerifyOptions chosen = c_api::verify_options(options);
    const VerifyReport report = verify(c_api::take(model), chosen);
    json::Value all = json::make_object();
    json::add(all, "passed", json::make(report.passed()));
    json::add(all, "executor", json::make(report.executor));
    json::add(all, "against", json::make(report.against));
    json::add(all, "values", json::make(static_cast<std::int64_t>(report.values)));
    json::add(all, "fused_values", json::make(static_cast<std::int64_t>(report.fused_values)));
    json::add(all, "difference", report.difference ? json::make(to_string(*report.difference)) : json::make_null());
    to = c_api::owned_text(json::line(all));
  });
}

gr_error* gr_devices(char** json) {
  return guarded([&] {
    char*& to = checked(json, "json");
    std::vector<json::Value> devices, missing;
    for (const std::string& name : executor_names()) {
      DeviceList list;
      try {
        list = find_executor(name)->devices();
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::device) throw;
        list.missing = error.diagnostics().front().message;
      }
      for (const Device& device : list.devices) {
        devices.push_back(
            json::make_object({{"id", json::make(device.id)},
                               {"executor", json::make(name)},
                               {"name", json::make(device.name)},
                               {"capability", json::make(device.capability)},
                               {"units", json::make(std::int64_t{device.units})},
                               {"driver", json::make(device.driver)},
                               {"memory_free", json::make(static_cast<std::int64_t>(device.memory_free))},
                               {"memory_total", json::make(static_cast<std::int64_t>(device.memory_total))}}));
      }
      if (!list.missing.empty())
        missing.push_back(json::make_object({{"executor", json::make(name)}, {"reason", json::make(list.missing)}}));
    }
    to = c_api::owned_text(json::line(json::make_object(
        {{"devices", json::make_array(std::move(devices))}, {"missing", json::make_array(std::move(missing))}})));
  });
}

gr_error* gr_help(const char* topic, char** text) {
  return guarded([&] {
    char*& to = checked(text, "text");
    to = c_api::owned_text(help_topic(&checked(topic, "topic")));
  });
}
