#include "export/onnx/onnx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "export/onnx/wire.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::onnx {
namespace {

// Values of AttributeProto.AttributeType.
constexpr std::int64_t kFloat = 1, kInt = 2, kInts = 7;
constexpr std::int64_t kIrVersion = 8;

std::string text(const Tensor& one) {
  Writer writer;
  for (const std::int64_t dim : one.dims) writer.number(1, dim);
  writer.number(2, static_cast<std::int64_t>(one.type));
  writer.bytes(8, one.name);
  writer.bytes(9, one.raw);
  return writer.text();
}

std::string text(const Attribute& one) {
  Writer writer;
  writer.bytes(1, one.name);
  if (one.type == kFloat) writer.float32(2, one.f);
  if (one.type == kInt) writer.number(3, one.i);
  if (one.type == kInts)
    for (const std::int64_t number : one.ints) writer.number(8, number);
  writer.number(20, one.type);
  return writer.text();
}

std::string text(const Node& node) {
  Writer writer;
  for (const std::string& input : node.inputs) writer.bytes(1, input);
  for (const std::string& output : node.outputs) writer.bytes(2, output);
  writer.bytes(3, node.name);
  writer.bytes(4, node.op);
  for (const Attribute& one : node.attributes) writer.bytes(5, text(one));
  return writer.text();
}

std::string text(const ValueInfo& value) {
  Writer shape;
  for (const Dim& dim : value.dims) {
    Writer extent;
    dim.symbol.empty() ? extent.number(1, dim.value) : extent.bytes(2, dim.symbol);
    shape.bytes(1, extent.text());
  }
  Writer of_tensor, type, writer;
  of_tensor.number(1, static_cast<std::int64_t>(value.type));
  of_tensor.bytes(2, shape.text());
  type.bytes(1, of_tensor.text());
  writer.bytes(1, value.name);
  writer.bytes(2, type.text());
  return writer.text();
}

// ---- decoding, one function per message type

Tensor read_tensor(std::string_view bytes) {
  Tensor tensor;
  for (Reader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case 1:
        reader.each_number([&](std::int64_t dim) { tensor.dims.push_back(dim); });
        break;
      case 2:
        tensor.type = static_cast<DataType>(static_cast<std::int32_t>(reader.number()));
        break;
      case 4:
        reader.each_float32([&](float value) { tensor.floats.push_back(value); });
        break;
      case 5:
      case 7:
        reader.each_number([&](std::int64_t value) { tensor.numbers.push_back(value); });
        break;
      case 8:
        tensor.name = reader.string();
        break;
      case 9:
        tensor.raw = reader.string();
        break;
      case 10: {
        const std::string_view packed = reader.bytes();
        tensor.doubles.resize(packed.size() / sizeof(double));
        if (!tensor.doubles.empty())
          std::memcpy(tensor.doubles.data(), packed.data(), tensor.doubles.size() * sizeof(double));
        break;
      }
      case 13:
        tensor.is_external = true;
        break;
      case 14:
        tensor.is_external = tensor.is_external || reader.number() == 1;
        break;
      default:
        break;
    }
  }
  return tensor;
}

Attribute read_attribute(std::string_view bytes) {
  Attribute one;
  for (Reader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case 1:
        one.name = reader.string();
        break;
      case 2:
        one.f = reader.float32();
        break;
      case 3:
        one.i = reader.number();
        break;
      case 4:
        one.s = reader.string();
        break;
      case 5:
        one.t = {read_tensor(reader.bytes())};
        break;
      case 8:
        reader.each_number([&](std::int64_t value) { one.ints.push_back(value); });
        break;
      case 20:
        one.type = reader.number();
        break;
      default:
        break;
    }
  }
  return one;
}

Node read_node(std::string_view bytes) {
  Node node;
  for (Reader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case 1:
        node.inputs.push_back(reader.string());
        break;
      case 2:
        node.outputs.push_back(reader.string());
        break;
      case 3:
        node.name = reader.string();
        break;
      case 4:
        node.op = reader.string();
        break;
      case 5:
        node.attributes.push_back(read_attribute(reader.bytes()));
        break;
      case 7:
        node.domain = reader.string();
        break;
      default:
        break;
    }
  }
  return node;
}

Dim read_dim(std::string_view bytes) {
  Dim dim;
  for (Reader reader(bytes); reader.next();) {
    if (reader.field() == 1) dim.value = reader.number();
    if (reader.field() == 2) dim.symbol = reader.string();
  }
  return dim;
}

// Calls f with the bytes of each field that has this number.
template <class F>
void each(std::string_view bytes, std::uint32_t field, F f) {
  for (Reader reader(bytes); reader.next();)
    if (reader.field() == field) f(reader);
}

ValueInfo read_value(std::string_view bytes) {
  ValueInfo value;
  each(bytes, 1, [&](const Reader& reader) { value.name = reader.string(); });
  each(bytes, 2, [&](const Reader& type) {
    each(type.bytes(), 1, [&](const Reader& of_tensor) {
      each(of_tensor.bytes(), 1, [&](const Reader& reader) {
        value.type = static_cast<DataType>(static_cast<std::int32_t>(reader.number()));
      });
      each(of_tensor.bytes(), 2, [&](const Reader& shape) {
        each(shape.bytes(), 1, [&](const Reader& dim) { value.dims.push_back(read_dim(dim.bytes())); });
      });
    });
  });
  return value;
}

void read_graph(std::string_view bytes, File& file) {
  for (Reader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case 1:
        file.nodes.push_back(read_node(reader.bytes()));
        break;
      case 2:
        file.name = reader.string();
        break;
      case 5:
        file.initializers.push_back(read_tensor(reader.bytes()));
        break;
      case 11:
        file.inputs.push_back(read_value(reader.bytes()));
        break;
      case 12:
        file.outputs.push_back(read_value(reader.bytes()));
        break;
      default:
        break;
    }
  }
}

[[noreturn]] void reject(const std::string& file, const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorKind::input, {{.code = "onnx.file", .message = message, .hint = hint, .file = file}});
}

}  // namespace

DataType data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return DataType::f32;
    case DType::f64:
      return DataType::f64;
    case DType::i32:
      return DataType::i32;
    case DType::boolean:
      return DataType::boolean;
    case DType::u64:
      break;
  }
  return DataType::none;
}

Tensor tensor(const std::string& name, const HostTensor& value) {
  const std::span<const std::int64_t> dims = value.shape().dims();
  const std::span<const std::byte> bytes = value.bytes();
  Tensor one;
  one.name = name;
  one.type = data_type(value.dtype());
  one.dims.assign(dims.begin(), dims.end());
  one.raw.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return one;
}

Tensor tensor(const std::string& name, const std::vector<std::int64_t>& values) {
  Tensor one;
  one.name = name;
  one.type = DataType::i64;
  one.dims = {static_cast<std::int64_t>(values.size())};
  one.raw.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t));
  return one;
}

HostTensor tensor_of(const Tensor& tensor, const std::string& file) {
  const std::string who = fmt::format("the tensor '{}'", printable(tensor.name));
  if (tensor.is_external) reject(file, who + " is in another file", "save the model with its weights inside");
  const DType dtype = tensor.type == DataType::f32   ? DType::f32
                      : tensor.type == DataType::f64 ? DType::f64
                                                     : DType::i32;
  const bool is_i64 = tensor.type == DataType::i64;
  if (dtype == DType::i32 && !is_i64 && tensor.type != DataType::i32)
    reject(file, fmt::format("{} has elements of ONNX's type {}; f32, f64, i32 and i64 are read", who,
                             static_cast<int>(tensor.type)));
  if (tensor.dims.size() > static_cast<std::size_t>(kMaxRank)) reject(file, who + " has too many dimensions");
  std::int64_t count = 1;
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0) reject(file, who + " has a negative dimension");
    count = checked_mul(count, dim);
  }
  const std::size_t width = is_i64 ? 8 : size_of(dtype);
  const std::size_t stored = !tensor.raw.empty()   ? tensor.raw.size() / width
                             : dtype == DType::f32 ? tensor.floats.size()
                             : dtype == DType::f64 ? tensor.doubles.size()
                                                   : tensor.numbers.size();
  if (static_cast<std::uint64_t>(count) != stored || (!tensor.raw.empty() && tensor.raw.size() % width != 0))
    reject(file, fmt::format("{} has {} elements by its shape, {} in the file", who, count, stored));
  HostTensor result(dtype, Shape(tensor.dims));
  with_elements(result, [&](auto to) {
    using T = typename decltype(to)::value_type;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if constexpr (std::is_same_v<T, float>) {
        if (tensor.raw.empty()) to[i] = tensor.floats[i];
      } else if constexpr (std::is_same_v<T, double>) {
        if (tensor.raw.empty()) to[i] = tensor.doubles[i];
      } else if (is_i64 || tensor.raw.empty()) {
        std::int64_t number = 0;
        if (tensor.raw.empty())
          number = tensor.numbers[i];
        else
          std::memcpy(&number, tensor.raw.data() + i * 8, 8);
        // Values beyond 32 bits are open ends of ranges, as in a slice to the end.
        number = std::clamp<std::int64_t>(number, std::numeric_limits<std::int32_t>::min(),
                                          std::numeric_limits<std::int32_t>::max());
        to[i] = static_cast<T>(number);
      }
    }
  });
  if (!is_i64 && !tensor.raw.empty()) std::memcpy(result.bytes().data(), tensor.raw.data(), tensor.raw.size());
  return result;
}

Attribute attribute(const std::string& name, std::int64_t value) {
  Attribute one;
  one.name = name;
  one.type = kInt;
  one.i = value;
  return one;
}

Attribute attribute(const std::string& name, float value) {
  Attribute one;
  one.name = name;
  one.type = kFloat;
  one.f = value;
  return one;
}

Attribute attribute(const std::string& name, const std::vector<std::int64_t>& value) {
  Attribute one;
  one.name = name;
  one.type = kInts;
  one.ints = value;
  return one;
}

std::string encode(const File& file) {
  Writer graph;
  for (const Node& node : file.nodes) graph.bytes(1, text(node));
  graph.bytes(2, file.name);
  for (const Tensor& tensor : file.initializers) graph.bytes(5, text(tensor));
  for (const ValueInfo& input : file.inputs) graph.bytes(11, text(input));
  for (const ValueInfo& output : file.outputs) graph.bytes(12, text(output));
  Writer opset, model;
  opset.bytes(1, "");
  opset.number(2, file.opset);
  model.number(1, kIrVersion);
  model.bytes(2, "graphrun");
  if (!file.text.empty()) model.bytes(6, file.text);  // doc_string
  model.bytes(7, graph.text());
  model.bytes(8, opset.text());
  return model.text();
}

File decode(const std::string& bytes, const std::string& name) {
  File file;
  bool has_graph = false;
  try {
    for (Reader reader(bytes); reader.next();) {
      if (reader.field() == 7) {
        if (has_graph) throw BadWire("it has two graphs");
        has_graph = true;
        read_graph(reader.bytes(), file);
      }
      if (reader.field() == 8) {
        std::string domain;
        std::int64_t version = 0;
        each(reader.bytes(), 1, [&](const Reader& field) { domain = field.string(); });
        each(reader.bytes(), 2, [&](const Reader& field) { version = field.number(); });
        if (domain.empty() || domain == "ai.onnx") file.opset = version;
      }
    }
  } catch (const BadWire& bad) {
    reject(name, fmt::format("not an ONNX file, or damaged: {}", bad.what()));
  }
  if (!has_graph) reject(name, "not an ONNX file: it has no graph");
  return file;
}

}  // namespace graphrun::onnx
