// attributes.h: the attributes of a node: values in the order of their op's schema.
// Contract: the schema is the only definition of names, kinds, defaults and bounds; parsing and printing use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/graph_builder.h"  // AttrValue, AttrList

namespace graphrun::ir {

struct AttrDef {
  std::string_view name;
  AttrValue fallback;                         // its alternative defines the attribute's kind
  std::string_view doc;                       // one phrase for the reference page
  bool required = false;                      // the fallback then only defines the kind
  std::optional<double> low = {}, high = {};  // inclusive bounds of a number
  std::vector<std::string_view> one_of = {};  // allowed values of a string
  bool above = false;                         // `low` itself is not allowed
  bool at_run_time = false;                   // a number, or the name of a runtime hyperparameter
};

using AttrSchema = std::vector<AttrDef>;

bool is_same_attr(std::string_view a, std::string_view b);  // treats axis and axes as one name, as NumPy does
const AttrDef* find_attr(const AttrSchema& schema, std::string_view name);
std::string expected(const AttrDef& wanted);               // "an integer >= 1"
bool fits(const AttrDef& wanted, const AttrValue& value);  // checks bounds and allowed strings, not the kind

// Error in one attribute, whose name lets the caller point at it.
class AttrError : public Error {
 public:
  AttrError(std::string_view name, std::string code, std::string message, std::string hint = {})
      : Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint)), attribute(name) {}
  std::string attribute;
};

// Converts the value to the kind in the schema: an integer to a real, a number to a list of one. Throws AttrError with
// what was expected.
AttrValue coerce(const AttrDef& wanted, const AttrValue& given);

class Attrs {
 public:
  Attrs() = default;
  // Fills in defaults and coerces the given values. Throws Error (kind input) for an unknown name (with the nearest
  // one) or a missing attribute, and AttrError from coerce().
  Attrs(const AttrSchema& schema, const AttrList& given);

  bool boolean(std::string_view name) const { return get<bool>(name); }
  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  double real(std::string_view name) const { return get<double>(name); }
  const std::string& string(std::string_view name) const { return get<std::string>(name); }
  const std::vector<std::int64_t>& integers(std::string_view name) const {
    return get<std::vector<std::int64_t>>(name);
  }
  const std::vector<double>& reals(std::string_view name) const { return get<std::vector<double>>(name); }
  // Null if the attribute is a number.
  const std::string* name_at_run_time(std::string_view name) const { return std::get_if<std::string>(&value(name)); }

  AttrList list() const;     // arguments that recreate these attributes
  std::string text() const;  // " axes=[0, 1] keepdims=false", defaults included
  // Exact: 0 and -0 differ.
  friend bool operator==(const Attrs& a, const Attrs& b) {
    return a.schema_ == b.schema_ && a.values_ == b.values_ && a.text() == b.text();
  }

 private:
  const AttrValue& value(std::string_view name) const;
  template <class T>
  const T& get(std::string_view name) const {
    return std::get<T>(value(name));
  }

  const AttrSchema* schema_ = nullptr;
  std::vector<AttrValue> values_;
};

std::string to_string(const AttrValue& value);

}  // namespace graphrun::ir
