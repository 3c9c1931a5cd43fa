// json_values.h: readers of values that several sections of a model file share: shapes, initializers, attributes,
// optimizers.
// Contract: a function reports an invalid value to the Reader, with its place, and returns nullopt.
// model_file.h defines the sections.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "graph/frontend/library/entry.h"
#include "graph/ir/attributes.h"
#include "graphrun/model.h"

namespace graphrun {

// Returns false and reports an error if the key is not a name.
bool check_name(json::Reader& reader, const json::Ref& object, const json::Member& member);
// Returns false and reports an error if the value is not an array. `what`: for instance "the graph is an array".
bool is_array(json::Reader& reader, const json::Ref& at, std::string_view what, std::string_view hint);
// Reads an array of integers >= 1. For an input, ["batch", 6] gives (6), the extents of one sample.
std::optional<Shape> read_shape(json::Reader& reader, const json::Ref& at, bool of_input = false);
std::optional<DType> read_dtype(json::Reader& reader, const json::Ref& at);  // f32 or i32
struct InitDoc : Entry {
  std::string_view argument = {};  // empty: the initializer is a plain string
  // Null for npz and FanInits, which read_init() handles.
  std::optional<Init> (*read)(json::Reader& reader, const json::Ref& argument) = nullptr;
};
const std::vector<InitDoc>& init_docs();

// Reads one array of an NPZ file. Throws Error.
using ReadArray = std::function<HostTensor(const std::string& file, const std::string& key)>;
// Reads "zeros", {"normal": 0.1}, {"npz": "file.npz", "key": "W"}, …, or values as nested arrays. Without `read_array`
// no file is opened and its values are zeros.
std::optional<Init> read_init(json::Reader& reader, const json::Ref& at, const ReadArray& read_array);
// Inverse of read_init(). Does not support Init::values or a normal distribution with mean != 0.
json::Value json_of(const Init& init);
json::Value json_of(const AttrValue& value);
// Returns nullopt, without a report, for an object, null, or a list with an item that is not a number.
std::optional<AttrValue> attr_value(const json::Value& value);
// Whether the value is {"runtime": 0.1}, a runtime hyperparameter. read_runtime() returns its number, or nullopt if it
// reported an error.
bool is_runtime(const json::Value& value);
std::optional<double> read_runtime(json::Reader& reader, const json::Ref& at);
// Reads the attributes in the schema. The caller checks for other keys with finish().
std::optional<AttrList> read_attrs(json::Reader& reader, json::ObjectReader& object, const ir::AttrSchema& schema,
                                   std::string_view owner);
// Reads {"sgd": {"lr": 0.1}}, in which lr may be a schedule.
void read_optimizer(json::Reader& reader, const json::Ref& at, OptimizerSpec& to);

}  // namespace graphrun
