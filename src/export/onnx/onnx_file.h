// onnx_file.h: the parts of an ONNX file (onnx/onnx.proto) that dense networks need, as plain structs.
// Contract: encode() writes IR version 8 and one opset; decode() reads files of others, skips what it does not know,
// and throws Error (kind input, code "onnx.file") for bytes that are no ONNX file. The elements of a tensor stay as
// they stand in the file until tensor_of() is asked. Leaves to others: what nodes compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/tensor.h"

namespace graphrun::onnx {

// TensorProto.DataType
enum class DataType : std::int32_t {
  none = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11
};
DataType data_type(DType dtype);

struct Tensor {
  std::string name;
  DataType type = DataType::none;
  std::vector<std::int64_t> dims;
  std::string raw;  // little endian; or one of the next two
  std::vector<float> floats;
  std::vector<std::int64_t> numbers;  // of i32, i64, boolean, ...
  std::vector<double> doubles;
  bool is_external = false;
};
Tensor tensor(const std::string& name, const HostTensor& value);
Tensor tensor(const std::string& name, const std::vector<std::int64_t>& values);  // i64
// f32, f64 or i32; i64 as i32. `file` and the name say where an Error is.
HostTensor tensor_of(const Tensor& tensor, const std::string& file);

// One of its fields is what the node's op asks for.
struct Attribute {
  std::string name;
  std::int64_t type = 0;  // AttributeProto.AttributeType
  float f = 0;
  std::int64_t i = 0;
  std::string s;
  std::vector<std::int64_t> ints;
  std::vector<Tensor> t;  // none or one
};
Attribute attribute(const std::string& name, std::int64_t value);
Attribute attribute(const std::string& name, float value);
Attribute attribute(const std::string& name, const std::vector<std::int64_t>& value);

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
  std::string symbol;  // empty: the number counts, 0: not known
};
struct ValueInfo {
  std::string name;
  DataType type = DataType::none;
  std::vector<Dim> dims;
};

struct File {
  std::string name;  // of the graph
  std::string text;  // for a reader
  std::int64_t opset = 0;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

std::string encode(const File& file);
File decode(const std::string& bytes, const std::string& file);

}  // namespace graphrun::onnx
