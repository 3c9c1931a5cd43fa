#include "graphrun/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/json_text.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr std::size_t kMaxItems = 16;                          // longer lists are left to the file itself
constexpr std::string_view kOptimizer = "settings.optimizer";  // object whose single key, the name, is also a field

// Former key suffixes under "scores" in results without "schema", and their current names.
constexpr std::pair<std::string_view, std::string_view> kOldKeys[] = {{".matthews", ".mcc"}};

void add_fields(const std::string& key, const json::Value& value, std::vector<RunRecord::Field>& fields);

// Adds lists of strings or numbers unchanged, and graph entries by name: "graph.h.units", "graph.loss".
void add_items(const std::string& key, const json::Value& list, std::vector<RunRecord::Field>& fields) {
  const auto is_plain = [](const json::Value& item) { return item.kind == json::Kind::string || item.is_number(); };
  const bool is_formulas = std::any_of(list.items.begin(), list.items.end(), [](const json::Value& item) {
    return item.kind == json::Kind::string && item.string.find(" = ") != std::string::npos;
  });
  if (!is_formulas && std::all_of(list.items.begin(), list.items.end(), is_plain)) {
    if (list.items.size() <= kMaxItems) fields.push_back({key, json::line(list), std::nullopt});
    return;
  }
  for (const json::Value& item : list.items) {
    if (const json::Member* name = item.find("name"); name != nullptr && name->value.kind == json::Kind::string)
      add_fields(key + "." + name->value.string, item, fields);
    if (const std::size_t equals = item.string.find(" = "); equals != std::string::npos)
      fields.push_back({key + "." + item.string.substr(0, equals), item.string.substr(equals + 3), std::nullopt});
  }
}

void add_fields(const std::string& key, const json::Value& value, std::vector<RunRecord::Field>& fields) {
  switch (value.kind) {
    case json::Kind::object:
      if (key == kOptimizer && value.members.size() == 1)
        fields.push_back({key, value.members.front().key, std::nullopt});
      for (const json::Member& member : value.members)
        add_fields(key.empty() ? member.key : key + "." + member.key, member.value, fields);
      return;
    case json::Kind::array:
      add_items(key, value, fields);
      return;
    case json::Kind::null:
      return;
    case json::Kind::string:
      fields.push_back({key, value.string, std::nullopt});
      return;
    case json::Kind::boolean:
    case json::Kind::integer:
    case json::Kind::real:
      fields.push_back({key, json::line(value), value.is_number() ? std::optional(value.real) : std::nullopt});
  }
}

void rename_old_keys(std::vector<RunRecord::Field>& fields) {
  for (RunRecord::Field& field : fields) {
    for (const auto& [before, now] : kOldKeys)
      if (field.key.starts_with("scores.") && field.key.ends_with(before))
        field.key.replace(field.key.size() - before.size(), before.size(), now);
  }
}

std::string name_of_run(const std::filesystem::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

bool is_run_folder(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / "run.json", ignored);
}

RunProvenance read_provenance(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "run.json").string();
  const json::Document document = json::parse(path, read_file(path));
  const auto text = [&](std::string_view key) {
    const json::Member* member = document.root.find(key);
    return member == nullptr ? std::string() : member->value.string;
  };
  RunProvenance provenance{{}, text("folder"), text("model_file"), text("version"), text("executor")};
  if (const json::Member* command = document.root.find("command")) {
    for (const json::Value& word : command->value.items) provenance.command.push_back(word.string);
  }
  return provenance;
}

std::vector<HyperparameterChange> read_changes(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "changes.json").string();
  std::vector<HyperparameterChange> changes;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return changes;
  const json::Document document = json::parse(path, read_file(path));
  const auto reject = [&] {
    throw Error(ErrorKind::input, "runs.changes", fmt::format("'{}' is not a list of changed hyperparameters", path));
  };
  if (document.root.kind != json::Kind::array) reject();
  for (const json::Value& item : document.root.items) {
    const json::Member *const step = item.find("step"), *const name = item.find("number");
    const json::Member *const from = item.find("from"), *const to = item.find("to");
    if (step == nullptr || name == nullptr || from == nullptr || to == nullptr) reject();
    const double after = step->value.real;
    if (!step->value.is_number() || !(after >= 0 && after < 0x1p53) || !to->value.is_number()) reject();
    changes.push_back({static_cast<std::uint64_t>(after), name->value.string, from->value.real, to->value.real});
    if (changes.size() > 1 && changes.back().step < changes[changes.size() - 2].step) reject();
  }
  return changes;
}

std::string to_string(const HyperparameterChange& change) {
  return fmt::format("{} {} -> {} after step {}", change.name, change.from, change.to, change.step);
}

RunRecord read_run(const std::string& folder) {
  const std::filesystem::path path(folder);
  RunRecord record;
  record.folder = folder;
  record.name = name_of_run(folder);
  const std::string result = (path / "result.json").string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(result, ignored)) return record;
  const std::string model = (path / "model.json").string();
  if (std::filesystem::is_regular_file(model, ignored)) {
    const json::Document document = json::parse(model, read_file(model));
    for (const json::Member& member : document.root.members) {
      if (member.value.kind != json::Kind::string && member.key != "train")  // both are part of the result
        add_fields(member.key, member.value, record.fields);
    }
  }
  const json::Document document = json::parse(result, read_file(result));
  add_fields("", document.root, record.fields);
  if (document.root.find("schema") == nullptr) rename_old_keys(record.fields);
  std::string changes;
  for (const HyperparameterChange& change : read_changes(folder))
    changes += (changes.empty() ? "" : "; ") + to_string(change);
  if (!changes.empty()) record.fields.push_back({"changes", std::move(changes), std::nullopt});
  const RunRecord::Field* cut = record.find("interrupted");
  record.state = record.find("failed") != nullptr        ? RunRecord::State::failed
                 : cut != nullptr && cut->text == "true" ? RunRecord::State::interrupted
                                                         : RunRecord::State::done;
  return record;
}

RunRecord read_run_or_error(const std::string& folder) {
  try {
    return read_run(folder);
  } catch (const Error& error) {
    RunRecord record;
    record.folder = folder;
    record.name = name_of_run(folder);
    record.state = RunRecord::State::unreadable;
    const Diagnostic& first = error.diagnostics().front();
    record.fields.push_back({"error", first.file.empty() ? first.message : first.file + ": " + first.message, {}});
    return record;
  }
}

std::vector<RunRecord> read_runs(const std::string& folder) {
  std::vector<RunRecord> runs;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_run_folder(entry->path().string())) runs.push_back(read_run(entry->path().string()));
  }
  if (error)
    throw Error(ErrorKind::input, "runs.folder",
                fmt::format("cannot read the folder '{}': {}", folder, error.message()));
  std::sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) { return a.name < b.name; });
  return runs;
}

}  // namespace graphrun
