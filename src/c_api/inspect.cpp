// inspect.cpp: c.h without sessions: verify, devices, help.
#include "base/json_writer.h"
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
    JsonWriter all(JsonWriter::Spacing::after_signs);
    all.begin_object().member("passed", report.passed()).member("executor", report.executor);
    all.member("against", report.against).member("values", report.values).member("fused_values", report.fused_values);
    all.key("difference");
    report.difference ? all.value(to_string(*report.difference)) : all.null();
    to = c_api::owned_text(all.end_object().text());
  });
}

gr_error* gr_devices(char** json) {
  return guarded([&] {
    char*& to = checked(json, "json");
    std::vector<std::pair<std::string, DeviceList>> found;
    for (const std::string& name : executor_names()) {
      DeviceList& list = found.emplace_back(name, DeviceList()).second;
      try {
        list = find_executor(name)->devices();
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::device) throw;
        list.missing = error.diagnostics().front().message;
      }
    }
    JsonWriter all(JsonWriter::Spacing::after_signs);
    all.begin_object().key("devices").begin_array();
    for (const auto& [name, list] : found) {
      for (const Device& device : list.devices) {
        all.begin_object().member("id", device.id).member("executor", name).member("name", device.name);
        all.member("capability", device.capability).member("units", device.units).member("driver", device.driver);
        all.member("memory_free", device.memory_free).member("memory_total", device.memory_total).end_object();
      }
    }
    all.end_array().key("missing").begin_array();
    for (const auto& [name, list] : found)
      if (!list.missing.empty())
        all.begin_object().member("executor", name).member("reason", list.missing).end_object();
    to = c_api::owned_text(all.end_array().end_object().text());
  });
}

gr_error* gr_help(const char* topic, char** text) {
  return guarded([&] {
    char*& to = checked(text, "text");
    to = c_api::owned_text(help_topic(&checked(topic, "topic")));
  });
}
