#include "graph/frontend/format/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/text.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/layers.h"
#include "graph/frontend/library/optimizers.h"

namespace graphrun {
namespace {

using json::Kind;
using json::Member;
using json::Ref;

std::string shown(const Override& o) {
  return fmt::format("--set {}={}", o.path, o.value);
}

[[noreturn]] void fail(const Override& o, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::input,
              {{.code = "set.path", .message = std::move(message), .hint = std::move(hint), .file = shown(o)}});
}

// An overridden value has no position in the file.
void forget_places(json::Value& value) {
  value.line = value.column = 0;
  for (json::Value& item : value.items) forget_places(item);
  for (Member& member : value.members) {
    member.line = member.column = 0;
    forget_places(member.value);
  }
}

json::Value json_of_setting(const Override& o) {
  json::Value value;
  try {
    value = json::parse(shown(o), o.value).root;
  } catch (const Error&) {
    const std::size_t first = o.value.find_first_not_of(" \t\n");
    // Text that starts like JSON must be valid JSON.
    if (first != std::string::npos && std::string_view("{[\"").find(o.value[first]) != std::string_view::npos) throw;
    value.kind = Kind::string;
    value.string = o.value;
  }
  forget_places(value);
  return value;
}

// The part of a path that leads to the optimizer of `train` or of an objective.
struct OptimizerPath {
  std::vector<std::string_view> keys = {};  // empty: not an optimizer path
  std::string_view rest = {};               // remainder of the path
};
OptimizerPath optimizer_path(std::string_view path) {
  constexpr std::string_view kTrain = "train", kObjectives = "train.objectives.", kKey = ".optimizer";
  const bool of_objective = path.starts_with(kObjectives);
  const std::size_t key = path.find(kKey, of_objective ? kObjectives.size() : 0), end = key + kKey.size();
  if (key == std::string_view::npos || (!of_objective && path.substr(0, key) != kTrain)) return {};
  if (end < path.size() && path[end] != '.') return {};
  OptimizerPath found{{kTrain, "optimizer"}, path.substr(std::min(end + 1, path.size()))};
  if (of_objective) {
    const std::string_view name = path.substr(kObjectives.size(), key - kObjectives.size());
    found.keys = {kTrain, "objectives", name, "optimizer"};
  }
  return found;
}

// {"adam": {"lr": 0.01}}: the optimizer with its required keys set to the values in its row.
json::Value whole_optimizer(const Override& o, const std::string& name) {
  const OptimizerDef* def = find_row(optimizers(), name);
  if (def == nullptr) {
    const Diagnostic d = unknown("optimizer", name, names_of(optimizers())).diagnostics().front();
    fail(o, d.message, d.hint);
  }
  json::Value keys = json::make_object();
  for (const ir::AttrDef& attr : def->attributes) {
    if (attr.required) json::add(keys, attr.name, json_of(attr.fallback));
  }
  return json::make_object({{name, std::move(keys)}});
}

bool is_only(const json::Value& object, std::string_view key) {
  return object.kind == Kind::object && object.members.size() == 1 && object.members.front().key == key;
}

// The value to set. An optimizer may be given by name alone; the current optimizer then keeps its keys.
json::Value meant(const Override& o, const json::Value& old) {
  json::Value value = json_of_setting(o);
  const OptimizerPath path = optimizer_path(o.path);
  if (path.keys.empty() || !path.rest.empty() || value.kind != Kind::string) return value;
  return is_only(old, value.string) ? old : whole_optimizer(o, value.string);
}

bool removes(const Override& o) {
  const std::size_t begin = o.value.find_first_not_of(" \t\n"), end = o.value.find_last_not_of(" \t\n");
  return begin != std::string::npos && o.value.substr(begin, end + 1 - begin) == "null";
}

// Sets, adds or removes a keyword argument in the only call that has it or, if none has, the only one that accepts it.
void set_argument(const Override& o, std::string& text, const std::string& pointer, const std::string& key) {
  const expression::Expression parsed = expression::parse(text);
  std::set<std::string_view> known;
  std::vector<const expression::Term*> given, possible;
  const auto argument_of = [&](const expression::Term& call) {
    const auto& all = call.attributes;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& argument) { return argument.key == key; });
    return found == all.end() ? nullptr : &*found;
  };
  for (const expression::Term& term : parsed.terms) {
    if (term.kind != expression::Term::Kind::call) continue;
    if (argument_of(term) != nullptr) given.push_back(&term);
    const Callable* callable = find_callable(term.word);
    if (callable == nullptr) continue;
    for (const ir::AttrDef& def : callable->attributes) known.insert(def.name);
    if (ir::find_attr(callable->attributes, key) != nullptr) possible.push_back(&term);
  }
  const auto& found = given.empty() ? possible : given;
  const std::string whole = fmt::format("--set graph.{0}='{0} = ...' sets the whole entry", parsed.name);
  if (found.empty())
    fail(o,
         fmt::format("{} has no argument '{}'{}{}", pointer, key,
                     known.empty() ? "" : "; its arguments: ", fmt::join(known, ", ")),
         whole);
  if (found.size() > 1) fail(o, fmt::format("{} calls in {} take '{}'", found.size(), pointer, key), whole);
  const expression::Argument* argument = argument_of(*found.front());
  const json::Value value = json_of_setting(o);
  const std::string said = value.kind == Kind::string ? json::line(value) : o.value;
  const std::size_t close = found.front()->end - 1;
  if (argument == nullptr) {
    const bool is_first = text.find_last_not_of(" \t\n\r", close - 1) == text.rfind('(', close);
    if (!removes(o)) text.insert(close, fmt::format("{}{}={}", is_first ? "" : ", ", key, said));
    return;
  }
  const expression::Term& old = parsed.terms[argument->value];
  if (!removes(o)) {
    text.replace(old.begin, old.end - old.begin, said);
    return;
  }
  // Also removes the comma before it or, for the first argument, after it.
  const std::size_t before = text.find_last_not_of(" \t\n\r", argument->at - 1);
  const std::size_t next = text.find_first_not_of(" \t\n\r", old.end);
  const std::size_t begin = text[before] == ',' ? before : argument->at;
  text.erase(begin, (begin != before && text[next] == ',' ? next + 1 : old.end) - begin);
}

// Name of a list item: its "name", or the name that its formula defines; "" if it has none.
std::string entry_name(const json::Value& item) {
  const Member* name = item.find("name");
  return name == nullptr ? expression::assigned_name(item.string) : name->value.string;
}

std::string_view parent(std::string_view path) {
  return path.substr(0, path.rfind('/'));
}

// Index of object members by key, or of list items by name. The first of equal keys wins.
struct Index {
  std::unordered_map<std::string, std::size_t> at;
  std::size_t longest = 0;  // length of the longest key

  void add(const std::string& key, std::size_t i) {
    longest = std::max(longest, key.size());
    at.emplace(key, i);
  }
};

// Applies settings in order, in time linear in their number because objects and lists on their paths are indexed.
// Exception: replacing a list item or its name drops the index of the list.
class Settings {
 public:
  explicit Settings(json::Value& root) : root_(root) {}

  void apply(Override& o) {
    if (o.path.empty() || o.path.starts_with('.') || o.path.ends_with('.') || o.path.find("..") != std::string::npos)
      fail(o, "the path must be keys with dots between them", "for instance train.epochs=100");
    take_other_optimizer(o);
    json::Value* value = &root_;
    Ref place{&root_, ""};
    std::string path;  // full path; `place.pointer` truncates long keys
    bool in_list = false;
    json::Value* owner = nullptr;  // owner of the value
    std::size_t at = 0;            // position in the owner
    std::string_view rest = o.path;
    for (int depth = 0; !rest.empty(); ++depth) {
      if (depth == json::kMaxDepth) fail(o, fmt::format("the path is deeper than {} levels", json::kMaxDepth));
      std::string_view segment = rest.substr(0, rest.find('.'));
      if (value->kind == Kind::string && in_list && parent(path) == "/graph") {
        o.pointer = place.pointer;
        try {
          set_argument(o, value->string, place.pointer, std::string(rest));
        } catch (const expression::ExpressionError& error) {
          fail(o, fmt::format("{} is not an expression: {}", place.pointer, error.diagnostics().front().message));
        }
        return forget_places(*value);
      }
      if (value->kind == Kind::null && owner != nullptr) *value = json::make_object();
      in_list = value->kind == Kind::array;
      owner = value;
      if (in_list) {
        at = item_index(o, *value, path, std::string(segment), place.pointer);
        place = place.item(at);
        value = &value->items[at];
        path += fmt::format("/{}", at);
      } else if (value->kind == Kind::object) {
        Member* member = existing_member(*value, path, rest);
        if (!member) {
          member = &value->members.emplace_back(Member{std::string(segment), 0, 0, {}});
          index_of(*value, path).add(member->key, value->members.size() - 1);
          if (o.pointer.empty()) o.pointer = place.member(*member).pointer;
          if (removes(o)) {
            member->value.boolean = true;
            if (!optimizer_path(o.path).keys.empty()) value->members.pop_back();
            forget(path, false);
            return;
          }
          if (segment.size() < rest.size()) member->value.kind = Kind::object;
        }
        at = static_cast<std::size_t>(member - value->members.data());
        segment = member->key;
        place = place.member(*member);
        value = &member->value;
        path += "/" + json::escape_pointer(segment);
      } else {
        fail(o,
             fmt::format("{} is {}, it has no parts", place.pointer.empty() ? "the file" : place.pointer,
                         json::name_of(value->kind)),
             "set the whole of it with a JSON value");
      }
      rest.remove_prefix(std::min(segment.size() + 1, rest.size()));
    }
    if (removes(o)) {
      if (in_list)
        owner->items.erase(owner->items.begin() + static_cast<std::ptrdiff_t>(at));
      else
        owner->members.erase(owner->members.begin() + static_cast<std::ptrdiff_t>(at));
      o.pointer = place.pointer + "/-";  // matches nothing: another value may take this place
      return forget(std::string(parent(path)), false);
    }
    *value = meant(o, *value);
    if (o.pointer.empty()) o.pointer = place.pointer;
    forget(path, in_list);
  }

 private:
  // A path into an optimizer that the model does not use replaces the current optimizer.
  void take_other_optimizer(Override& o) {
    const OptimizerPath path = optimizer_path(o.path);
    if (path.rest.empty() || removes(o)) return;
    const std::string name(path.rest.substr(0, path.rest.find('.')));
    json::Value* value = &root_;
    std::string pointer;
    for (const std::string_view key : path.keys) {
      const auto member = std::ranges::find(value->members, key, &Member::key);
      if (member == value->members.end()) return;
      value = &member->value;
      pointer += "/" + json::escape_pointer(key);
    }
    if (value->kind != Kind::object || value->members.size() != 1 || is_only(*value, name)) return;
    *value = whole_optimizer(o, name);
    o.pointer = pointer;
    forget(pointer, false);
  }

  Index& index_of(const json::Value& value, const std::string& path) {
    const auto [entry, fresh] = indexes_.try_emplace(path);
    Index& index = entry->second;
    for (std::size_t i = 0; fresh && i < value.members.size(); ++i) index.add(value.members[i].key, i);
    for (std::size_t i = 0; fresh && i < value.items.size(); ++i) {
      if (const std::string name = entry_name(value.items[i]); !name.empty()) index.add(name, i);
    }
    return index;
  }

  // Drops the indexes of a changed value, and of lists whose item names may have changed.
  void forget(const std::string& path, bool in_list) {
    indexes_.erase(path);
    const std::string below = path + "/";
    for (auto i = indexes_.lower_bound(below); i != indexes_.end() && i->first.starts_with(below);)
      i = indexes_.erase(i);
    if (in_list) indexes_.erase(std::string(parent(path)));
    if (path.ends_with("/name")) indexes_.erase(std::string(parent(parent(path))));
  }

  std::size_t item_index(const Override& o, const json::Value& list, const std::string& path,
                         const std::string& segment, const std::string& pointer) {
    if (const std::optional<std::size_t> index = parse_number<std::size_t>(segment)) {
      if (*index < list.items.size()) return *index;
      fail(o, fmt::format("{} has {} items, there is none with index {}", pointer, list.items.size(), segment));
    }
    const Index& names = index_of(list, path);
    if (const auto found = names.at.find(segment); found != names.at.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& name : names.at) known.push_back(name.first);
    std::sort(known.begin(), known.end());
    const std::string hint = did_you_mean(segment, known);
    fail(o, fmt::format("no object in {} has the name {}", pointer, segment),
         hint.empty() ? "an index from 0 works too" : hint);
  }

  // Names may contain dots: the longest key that is a prefix of the rest of the path wins.
  Member* existing_member(json::Value& object, const std::string& path, std::string_view rest) {
    const Index& index = index_of(object, path);
    std::size_t end = rest.size() <= index.longest ? rest.size() : rest.rfind('.', index.longest);
    for (; end != std::string_view::npos && end > 0; end = rest.rfind('.', end - 1)) {
      const auto found = index.at.find(std::string(rest.substr(0, end)));
      if (found != index.at.end()) return &object.members[found->second];
    }
    return nullptr;
  }

  json::Value& root_;
  std::map<std::string, Index> indexes_;  // keyed by path
};

bool within(std::string_view pointer, std::string_view outer) {
  return pointer.starts_with(outer) && (pointer.size() == outer.size() || pointer[outer.size()] == '/');
}

}  // namespace

std::vector<Override> apply_overrides(json::Document& document,
                                      const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<Override> overrides;
  Settings all(document.root);
  for (const auto& [path, value] : settings) all.apply(overrides.emplace_back(Override{path, value, {}}));
  return overrides;
}

Error blame(const Error& error, const std::vector<Override>& overrides) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    for (const Override& o : overrides) {
      if (!within(d.pointer, o.pointer)) continue;
      d.file = shown(o);
      if (d.line == 0) continue;  // it already shows the value
      d.line = d.column = 0;
      d.source_line.clear();
    }
  }
  return Error(error.kind(), std::move(diagnostics), error.more());
}

}  // namespace graphrun
