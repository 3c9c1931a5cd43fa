// onnx_file.h: subset of an ONNX file (onnx/onnx.proto) that dense networks need, as plain structs.
// Contract: encode() writes IR version 8 and one opset. decode() reads other versions too, skips unknown fields, and
// throws Error (kind input, code "onnx.file") for bytes that are not an ONNX file. Tensor elements stay encoded until
// tensor_of() is called. Not handled here: semantics of the nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/tensor.h"

namespace graphrun::onnx {

inline constexpr const char* kMlDomain = "ai.onnx.ml";

// Values of TensorProto.DataType.
enum class DataType : std::int32_t {
  none = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11
};
DataType data_type(DType dtype);
std::string type_name(DataType type);  // "f16"; "type 99" for an unknown number
bool has_elements(DataType type);      // tensor_of() reads it

struct Tensor {
  std::string name;
  DataType type = DataType::none;
  std::vector<std::int64_t> dims;
  std::string raw;  // little-endian; if empty, one of the three vectors below
  std::vector<float> floats;
  std::vector<std::int64_t> numbers;  // i32, i64, boolean, ...
  std::vector<double> doubles;
  bool is_external = false;
  std::string location, offset, length;  // in another file; offset and length may be empty
};
Tensor tensor(const std::string& name, const HostTensor& value);
Tensor tensor(const std::string& name, const std::vector<std::int64_t>& values);  // i64
// Result is f32, f64, bool or i32 (i64 is clamped to i32). Reads external data from the folder of `file`, or a folder
// in it. An Error names `file` and the tensor.
HostTensor tensor_of(const Tensor& tensor, const std::string& file);

// The node's op determines which field is used.
struct Attribute {
  std::string name = {};
  std::int64_t type = 0;  // AttributeProto.AttributeType
  float f = 0;
  std::int64_t i = 0;
  std::string s = {};
  std::vector<std::int64_t> ints = {};
  std::vector<float> floats = {};
  std::vector<std::string> strings = {};
  std::vector<Tensor> t = {};  // at most one
};
Attribute attribute(const std::string& name, std::int64_t value);
Attribute attribute(const std::string& name, float value);
Attribute attribute(const std::string& name, const std::vector<std::int64_t>& value);
Attribute attribute(const std::string& name, const std::vector<std::string>& value);
Attribute attribute(const std::string& name, const std::string& value);

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
  const Attribute* find(std::string_view attribute) const {
    for (const Attribute& one : attributes)
      if (one.name == attribute) return &one;
    return nullptr;
  }
};

// A dimension is a number or a symbol.
struct Dim {
  std::int64_t value = 0;
  std::string symbol;  // if empty, `value` applies (0: unknown)
};
struct ValueInfo {
  std::string name;
  DataType type = DataType::none;
  std::vector<Dim> dims;
};

struct File {
  std::string name;  // name of the graph
  std::string text;  // doc_string
  std::int64_t opset = 0;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

std::string encode(const File& file);
File decode(const std::string& bytes, const std::string& file);

}  // namespace graphrun::onnx
