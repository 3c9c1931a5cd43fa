// json_schema.h: the subset of JSON Schema (2020-12) that model_schema() uses, for tests.
// Contract: returns "" if the value is valid, otherwise the pointer of an invalid value and the keyword. Throws
// std::logic_error for an unknown keyword, so that the schema cannot require more than is checked.
#pragma once

#include <string>

#include "base/json.h"

namespace graphrun::test {

std::string violation(const json::Value& schema, const json::Value& value);

}  // namespace graphrun::test
