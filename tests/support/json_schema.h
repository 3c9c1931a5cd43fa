// json_schema.h: the part of JSON Schema (2020-12) that model_schema() uses, for tests.
// Contract: "" when the value fits, else the pointer of a value that does not and the keyword; throws std::logic_error
// for a keyword it does not know, so that the schema cannot say more than is checked.
#pragma once

#include <string>

#include "base/json.h"

namespace graphrun::test {

std::string violation(const json::Value& schema, const json::Value& value);

}  // namespace graphrun::test
