#include "c_api/options.h"

#include <array>
#include <utility>

#include "base/json_reader.h"
#include "base/json_text.h"

namespace graphrun::c_api {
namespace {

// Reads one object. end() reports unknown keys, and throws if there was any error.
class Options {
 public:
  explicit Options(const char* json)
      : document_(json::parse("<options>", json == nullptr || *json == '\0' ? "{}" : json)),
        reader_(document_),
        object_(reader_, reader_.root()) {}

  void string(std::string_view key, std::string& to) {
    if (auto value = object_.string(key)) to = std::move(*value);
  }
  void strings(std::string_view key, std::vector<std::string>& to) {
    const auto at = object_.get(key);
    if (!at) return;
    if (at->value->kind != json::Kind::array) {
      reader_.report(*at, "options.value", "must be an array of names");
      return;
    }
    for (std::size_t i = 0; i < at->value->items.size(); ++i) {
      if (auto name = reader_.string(at->item(i))) to.push_back(std::move(*name));
    }
  }
  void boolean(std::string_view key, bool& to) {
    if (const auto value = object_.boolean(key)) to = *value;
  }
  template <class Integer>
  void integer(std::string_view key, std::int64_t low, std::int64_t high, Integer& to) {
    if (const auto value = object_.integer(key, low, high)) to = static_cast<Integer>(*value);
  }
  template <class Choice, std::size_t n>
  void choice(std::string_view key, const std::array<std::pair<std::string_view, Choice>, n>& choices, Choice& to) {
    const auto at = object_.get(key);
    if (!at) return;
    const auto word = reader_.string(*at);
    if (!word) return;
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (name == *word) {
        to = value;
        return;
      }
      names.emplace_back(name);
    }
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    reader_.report(*at, "options.value", "'" + *word + "' is not one of " + all, did_you_mean(*word, names));
  }
  // {"train.epochs": 5, "train.optimizer": "adam"}: a string is passed as is, any other value as JSON, as with --set.
  void overrides(std::string_view key, std::vector<std::pair<std::string, std::string>>& to) {
    const auto at = object_.get(key);
    if (!at) return;
    if (at->value->kind != json::Kind::object) {
      reader_.report(*at, "options.value", "must be an object of paths and values");
      return;
    }
    for (const json::Member& member : at->value->members) {
      const json::Value& value = member.value;
      to.emplace_back(member.key, value.kind == json::Kind::string ? value.string : json::line(value));
    }
  }
  void end() {
    object_.finish();
    reader_.throw_if_failed();
  }

 private:
  json::Document document_;
  json::Reader reader_;
  json::ObjectReader object_;
};

void read_session(Options& options, SessionOptions& session) {
  options.string("executor", session.executor);
  options.string("target", session.target);
  options.string("tiling", session.tiling);
  options.boolean("fuse", session.fuse);
  options.boolean("passes", session.passes);
  options.integer("threads", 0, 1 << 16, session.threads);
  options.choice(
      "jit",
      std::array{std::pair{std::string_view("prefer"), Jit::prefer},
                 std::pair{std::string_view("require"), Jit::require}, std::pair{std::string_view("off"), Jit::off}},
      session.jit);
}

}  // namespace

LoadOptions load_options(const char* json) {
  Options options(json);
  LoadOptions load;
  options.overrides("set", load.overrides);
  options.string("data_dir", load.data_dir);
  options.string("weights", load.weights);
  options.choice("data",
                 std::array{std::pair{std::string_view("values"), DataUse::values},
                            std::pair{std::string_view("sizes"), DataUse::sizes},
                            std::pair{std::string_view("none"), DataUse::given}},
                 load.data);
  options.end();
  return load;
}

OpenOptions open_options(const char* json) {
  Options options(json);
  OpenOptions session;
  read_session(options, session);
  options.strings("rows_vary", session.rows_vary);
  options.end();
  return session;
}

VerifyOptions verify_options(const char* json) {
  Options options(json);
  VerifyOptions verify;
  read_session(options, verify);
  options.string("against", verify.against);
  options.integer("steps", 1, 1'000'000, verify.steps);
  options.end();
  return verify;
}

}  // namespace graphrun::c_api
