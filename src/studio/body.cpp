#include "studio/body.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/error.h"

namespace graphrun::studio {
namespace {

[[noreturn]] void reject_body(std::string_view why) {
  throw Error(ErrorKind::input, "studio.body", fmt::format("invalid request: {}", why));
}

}  // namespace

Body::Body(std::string_view json) {
  try {
    object_ = json::parse("", std::string(json)).root;
  } catch (const Error& error) {
    reject_body(error.diagnostics().front().message);
  }
  const auto is_nested = [](const json::Member& member) {
    return member.value.kind == json::Kind::array || member.value.kind == json::Kind::object;
  };
  if (object_.kind != json::Kind::object || std::any_of(object_.members.begin(), object_.members.end(), is_nested))
    reject_body("expected an object of strings, numbers and booleans");
}

std::string Body::text(std::string_view name) const {
  const json::Member* found = object_.find(name);
  if (found == nullptr || found->value.kind != json::Kind::string)
    reject_body(fmt::format("expected a string in '{}'", name));
  return found->value.string;
}

std::string Body::text_or(std::string_view name, std::string_view otherwise) const {
  const json::Member* found = object_.find(name);
  return found == nullptr || found->value.kind != json::Kind::string ? std::string(otherwise) : found->value.string;
}

std::optional<double> Body::number(std::string_view name) const {
  const json::Member* found = object_.find(name);
  return found == nullptr || !found->value.is_number() ? std::nullopt : std::optional(found->value.real);
}

std::vector<std::string> json_texts(std::string_view json) {
  std::vector<std::string> texts;
  for (std::size_t begin = json.find('"'); begin < json.size(); begin = json.find('"')) {
    std::size_t end = begin + 1;
    while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    texts.push_back(json::parse("", std::string(json.substr(begin, end + 1 - begin))).root.string);
    json.remove_prefix(std::min(end + 1, json.size()));
  }
  return texts;
}

}  // namespace graphrun::studio
