// json_values.h: the values that several sections of a model file share: names, shapes, initializers, attributes.
// Contract: each reports what does not fit to the Reader, at its own place, and returns nothing.
// Leaves to others: which section wants which (model_file.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "graph/frontend/library/entry.h"
#include "graph/ir/attributes.h"
#include "graphrun/graph_builder.h"

namespace graphrun {

// Whether the value is an array. `what`: "the graph is an array", for the message.
bool is_array(json::Reader& reader, const json::Ref& at, std::string_view what, std::string_view hint);
// The extents of an array of integers >= 1. Of an input ["batch", 6] is (6): the extents of one sample.
std::optional<Shape> read_shape(json::Reader& reader, const json::Ref& at, bool of_input = false);
std::optional<DType> read_dtype(json::Reader& reader, const json::Ref& at);  // f32 or i32
struct InitDoc : Entry {
  std::string_view argument = {};  // without one the word alone
  // Null: npz, which read_init() reads.
  std::optional<Init> (*read)(json::Reader& reader, const json::Ref& argument) = nullptr;
};
const std::vector<InitDoc>& init_docs();

// An array of an NPZ file. Throws Error.
using ReadArray = std::function<HostTensor(const std::string& file, const std::string& key)>;
// "zeros", {"normal": 0.1}, {"npz": "file.npz", "key": "W"}, …, or the values themselves as nested arrays. Without
// `read_array` no file is opened, and zeros stand for its values.
std::optional<Init> read_init(json::Reader& reader, const json::Ref& at, const ReadArray& read_array);
// The same, to be read again. Not for Init::values and a normal whose mean is not 0, which the format does not have.
json::Value json_of(const Init& init);
json::Value json_of(const AttrValue& value);
// Nothing is reported for what no attribute can be: an object, null, a list that is not of numbers.
std::optional<AttrValue> attr_value(const json::Value& value);
// Whether it is {"runtime": 0.1}, a number that the host may change between steps; `number`: that of it, and nothing
// where it was reported.
bool is_runtime(const json::Value& value);
std::optional<double> read_runtime(json::Reader& reader, const json::Ref& at);
// The attributes of the schema that the object has. Keys beyond the schema are the caller's to finish().
std::optional<AttrList> read_attrs(json::Reader& reader, json::ObjectReader& object, const ir::AttrSchema& schema,
                                   std::string_view owner);

}  // namespace graphrun
