#include "export/onnx/onnx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/checked.h"
#include "base/protobuf.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::onnx {
namespace {

using protobuf::BadWire;
using protobuf::Reader;
using protobuf::Writer;

// Values of AttributeProto.AttributeType.
constexpr std::int64_t kFloat = 1, kInt = 2, kString = 3, kInts = 7, kStrings = 8;
constexpr std::int64_t kIrVersion = 8;

std::string text(const Tensor& one) {
  Writer writer;
  for (const std::int64_t dim : one.dims) writer.number(1, dim);
  writer.number(2, static_cast<std::int64_t>(one.type));
  writer.bytes(8, one.name);
  const auto external = [&](const char* key, const std::string& value) {
    Writer entry;
    entry.bytes(1, key), entry.bytes(2, value);
    if (!value.empty()) writer.bytes(13, entry.text());
  };
  external("location", one.location), external("offset", one.offset), external("length", one.length);
  if (one.is_external) writer.number(14, 1);
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
  if (!one.s.empty() || one.type == kString) writer.bytes(4, one.s);
  for (const std::string& text : one.strings) writer.bytes(9, text);
  for (const float number : one.floats) writer.float32(7, number);
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
  if (!node.domain.empty()) writer.bytes(7, node.domain);
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

// Calls f(number of the field, reader at the field) for each field.
template <class F>
void each(std::string_view bytes, F f) {
  for (Reader reader(bytes); reader.next();) f(reader.field(), reader);
}

Tensor read_tensor(std::string_view bytes) {
  Tensor tensor;
  each(bytes, [&](std::uint32_t field, const Reader& reader) {
    if (field == 1) reader.each_number([&](std::int64_t dim) { tensor.dims.push_back(dim); });
    if (field == 2) tensor.type = static_cast<DataType>(static_cast<std::int32_t>(reader.number()));
    if (field == 4) reader.each_float32([&](float value) { tensor.floats.push_back(value); });
    if (field == 5 || field == 7) reader.each_number([&](std::int64_t value) { tensor.numbers.push_back(value); });
    if (field == 8) tensor.name = reader.string();
    if (field == 9) tensor.raw = reader.string();
    if (field == 10) {
      const std::string_view packed = reader.bytes();
      tensor.doubles.resize(packed.size() / sizeof(double));
      if (!tensor.doubles.empty())
        std::memcpy(tensor.doubles.data(), packed.data(), tensor.doubles.size() * sizeof(double));
    }
    if (field == 13) {
      std::string key, value;
      each(reader.bytes(), [&](std::uint32_t number, const Reader& entry) {
        if (number <= 2) (number == 1 ? key : value) = entry.string();
      });
      if (key == "location") tensor.location = value;
      if (key == "offset") tensor.offset = value;
      if (key == "length") tensor.length = value;
    }
    tensor.is_external = tensor.is_external || field == 13 || (field == 14 && reader.number() == 1);
  });
  return tensor;
}

Attribute read_attribute(std::string_view bytes) {
  Attribute one;
  each(bytes, [&](std::uint32_t field, const Reader& reader) {
    if (field == 1) one.name = reader.string();
    if (field == 2) one.f = reader.float32();
    if (field == 3) one.i = reader.number();
    if (field == 4) one.s = reader.string();
    if (field == 5) one.t = {read_tensor(reader.bytes())};
    if (field == 7) reader.each_float32([&](float value) { one.floats.push_back(value); });
    if (field == 8) reader.each_number([&](std::int64_t value) { one.ints.push_back(value); });
    if (field == 9) one.strings.push_back(reader.string());
    if (field == 20) one.type = reader.number();
  });
  return one;
}

Node read_node(std::string_view bytes) {
  Node node;
  each(bytes, [&](std::uint32_t field, const Reader& reader) {
    if (field == 1) node.inputs.push_back(reader.string());
    if (field == 2) node.outputs.push_back(reader.string());
    if (field == 3) node.name = reader.string();
    if (field == 4) node.op = reader.string();
    if (field == 5) node.attributes.push_back(read_attribute(reader.bytes()));
    if (field == 7) node.domain = reader.string();
  });
  return node;
}

Dim read_dim(std::string_view bytes) {
  Dim dim;
  each(bytes, [&](std::uint32_t field, const Reader& reader) {
    if (field == 1) dim.value = reader.number();
    if (field == 2) dim.symbol = reader.string();
  });
  return dim;
}

// Only tensors have a type and dimensions.
ValueInfo read_value(std::string_view bytes) {
  ValueInfo value;
  each(bytes, [&](std::uint32_t field, const Reader& reader) {
    if (field == 1) value.name = reader.string();
    if (field != 2) return;
    each(reader.bytes(), [&](std::uint32_t kind, const Reader& of_tensor) {
      if (kind != 1) return;
      each(of_tensor.bytes(), [&](std::uint32_t part, const Reader& of) {
        if (part == 1) value.type = static_cast<DataType>(static_cast<std::int32_t>(of.number()));
        if (part != 2) return;
        each(of.bytes(), [&](std::uint32_t number, const Reader& dim) {
          if (number == 1) value.dims.push_back(read_dim(dim.bytes()));
        });
      });
    });
  });
  return value;
}

void read_graph(std::string_view bytes, File& file) {
  each(bytes, [&](std::uint32_t field, const Reader& reader) {
    if (field == 1) file.nodes.push_back(read_node(reader.bytes()));
    if (field == 2) file.name = reader.string();
    if (field == 5) file.initializers.push_back(read_tensor(reader.bytes()));
    if (field == 11) file.inputs.push_back(read_value(reader.bytes()));
    if (field == 12) file.outputs.push_back(read_value(reader.bytes()));
  });
}

[[noreturn]] void reject(const std::string& file, const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorKind::input, {{.code = "onnx.file", .message = message, .hint = hint, .file = file}});
}

}  // namespace

DataType data_type(DType dtype) {
  constexpr DataType kTypes[] = {DataType::f32, DataType::f64, DataType::i32, DataType::none, DataType::boolean};
  return kTypes[static_cast<std::size_t>(dtype)];
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

std::string type_name(DataType type) {
  static constexpr const char* kNames[] = {"none", "f32", "u8",  "i8",  "u16", "i16", "i32",  "i64", "string",
                                           "bool", "f16", "f64", "u32", "u64", "c64", "c128", "bf16"};
  const auto number = static_cast<std::size_t>(type);
  return number < std::size(kNames) ? kNames[number] : fmt::format("type {}", static_cast<std::int32_t>(type));
}

// Bytes of an element in raw data; 0: not supported.
static std::size_t width_of(DataType type) {
  static constexpr std::size_t kWidths[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8};
  const auto number = static_cast<std::size_t>(type);
  return number < std::size(kWidths) ? kWidths[number] : 0;
}

bool has_elements(DataType type) {
  return width_of(type) != 0;
}

// The tensor's bytes from a file in the folder of `file`.
static std::string external_bytes(const Tensor& tensor, std::uint64_t size, const std::string& file,
                                  const std::string& who) {
  namespace fs = std::filesystem;
  const auto fail = [&](const std::string& why, const std::string& hint = {}) {
    reject(file, fmt::format("{}: its file '{}' {}", who, printable(tensor.location), why), hint);
  };
  const auto number = [&](const std::string& text, std::uint64_t usual) {
    std::uint64_t value = usual;
    const char* end = text.data() + text.size();
    if (!text.empty() && std::from_chars(text.data(), end, value) != std::from_chars_result{end, std::errc()})
      fail("has no such offset or length");
    return value;
  };
  const std::uint64_t offset = number(tensor.offset, 0), length = number(tensor.length, size);
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(fs::path(file), error).parent_path(), error);
  const fs::path path = fs::weakly_canonical(folder / tensor.location, error);
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (error || tensor.location.empty() || tensor.location.find('\0') != std::string::npos ||
      fs::path(tensor.location).is_absolute() || end != folder.end())
    fail("is outside the folder of the ONNX file", "move it next to the ONNX file");
  if (!fs::is_regular_file(path, error)) fail("is missing", "keep it next to the ONNX file");
  if (length != size) fail(fmt::format("has {} bytes for it; its shape needs {}", length, size));
  const std::uint64_t available = fs::file_size(path, error);
  if (error || offset > available || size > available - offset)
    fail(fmt::format("ends early: {} bytes are needed from byte {} on", size, offset), "copy it again");
  std::string bytes(size, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!stream) fail("cannot be read");
  return bytes;
}

// IEEE 754 binary16; an integer tensor holds its bits.
static float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}

HostTensor tensor_of(const Tensor& tensor, const std::string& file) {
  const std::string who = fmt::format("the tensor '{}'", printable(tensor.name));
  const std::size_t width = width_of(tensor.type);
  if (width == 0) reject(file, fmt::format("{} has the dtype {}, which is not supported", who, type_name(tensor.type)));
  const bool is_half = tensor.type == DataType::f16;
  const DType dtype = tensor.type == DataType::f32 || is_half ? DType::f32
                      : tensor.type == DataType::f64          ? DType::f64
                      : tensor.type == DataType::boolean      ? DType::boolean
                                                              : DType::i32;
  if (tensor.dims.size() > static_cast<std::size_t>(kMaxRank)) reject(file, who + " has too many dimensions");
  std::int64_t count = 1;
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0) reject(file, who + " has a negative dimension");
    count = checked_mul(count, dim);
  }
  std::string external;
  if (tensor.is_external)
    external = external_bytes(tensor, static_cast<std::uint64_t>(checked_mul(count, static_cast<std::int64_t>(width))),
                              file, who);
  const std::string& raw = tensor.is_external ? external : tensor.raw;
  const std::size_t stored = !raw.empty()          ? raw.size() / width
                             : is_half             ? tensor.numbers.size()
                             : dtype == DType::f32 ? tensor.floats.size()
                             : dtype == DType::f64 ? tensor.doubles.size()
                                                   : tensor.numbers.size();
  if (static_cast<std::uint64_t>(count) != stored || (!raw.empty() && raw.size() % width != 0))
    reject(file, fmt::format("{} has {} elements by its shape, {} in the file", who, count, stored));
  HostTensor result(dtype, Shape(tensor.dims));
  if (!raw.empty() && width == size_of(dtype)) {
    std::memcpy(result.bytes().data(), raw.data(), raw.size());
    return result;
  }
  const auto integer = [&](std::size_t i) -> std::int64_t {
    if (raw.empty()) return tensor.numbers[i];
    const std::span<const std::byte> bytes = std::as_bytes(std::span(raw));
    switch (static_cast<int>(tensor.type)) {
      case 2:
        return load_element<std::uint8_t>(bytes, i);
      case 3:
        return load_element<std::int8_t>(bytes, i);
      case 4:
      case 10:
        return load_element<std::uint16_t>(bytes, i);
      case 5:
        return load_element<std::int16_t>(bytes, i);
      default:
        return load_element<std::int64_t>(bytes, i);
    }
  };
  with_elements(result, [&]<class T>(std::span<T> to) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      if constexpr (std::is_same_v<T, float>)
        to[i] = is_half ? from_half(static_cast<std::uint16_t>(integer(i))) : tensor.floats[i];
      else if constexpr (std::is_same_v<T, double>)
        to[i] = tensor.doubles[i];
      else if constexpr (std::is_same_v<T, std::uint8_t>)
        to[i] = tensor.numbers[i] != 0 ? 1 : 0;
      else  // Values beyond 32 bits are open ends of ranges, as in a slice to the end.
        to[i] = static_cast<T>(std::clamp<std::int64_t>(integer(i), INT32_MIN, INT32_MAX));
    }
  });
  return result;
}

Attribute attribute(const std::string& name, std::int64_t value) {
  return {.name = name, .type = kInt, .i = value};
}
Attribute attribute(const std::string& name, float value) {
  return {.name = name, .type = kFloat, .f = value};
}
Attribute attribute(const std::string& name, const std::vector<std::int64_t>& value) {
  return {.name = name, .type = kInts, .ints = value};
}
Attribute attribute(const std::string& name, const std::vector<std::string>& value) {
  return {.name = name, .type = kStrings, .strings = value};
}
Attribute attribute(const std::string& name, const std::string& value) {
  return {.name = name, .type = kString, .s = value};
}

std::string encode(const File& file) {
  Writer graph;
  for (const Node& node : file.nodes) graph.bytes(1, text(node));
  graph.bytes(2, file.name);
  for (const Tensor& tensor : file.initializers) graph.bytes(5, text(tensor));
  for (const ValueInfo& input : file.inputs) graph.bytes(11, text(input));
  for (const ValueInfo& output : file.outputs) graph.bytes(12, text(output));
  Writer opset, of_ml, model;
  opset.bytes(1, "");
  opset.number(2, file.opset);
  of_ml.bytes(1, kMlDomain);
  of_ml.number(2, 2);
  model.number(1, kIrVersion);
  model.bytes(2, "graphrun");
  if (!file.text.empty()) model.bytes(6, file.text);  // doc_string
  model.bytes(7, graph.text());
  model.bytes(8, opset.text());
  const auto is_ml = [](const Node& node) { return node.domain == kMlDomain; };
  if (std::any_of(file.nodes.begin(), file.nodes.end(), is_ml)) model.bytes(8, of_ml.text());
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
        each(reader.bytes(), [&](std::uint32_t field, const Reader& value) {
          if (field == 1) domain = value.string();
          if (field == 2) version = value.number();
        });
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
