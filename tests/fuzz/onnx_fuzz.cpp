// onnx_fuzz.cpp: libFuzzer's entry: bytes as an ONNX file, imported, and the model that it gives read and built.
// cmake -DGRAPHRUN_FUZZER=ON with clang; build/…/bin/fuzz_onnx corpus/ (files that export-onnx wrote)
#include <cstdint>
#include <string>

#include "base/json_reader.h"
#include "export/onnx/import.h"
#include "graph/frontend/format/model_file.h"
#include "graphrun/error.h"

using namespace graphrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    ImportedModel imported = onnx::imported(std::string(reinterpret_cast<const char*>(bytes), size), "fuzz.onnx");
    json::Document document;
    try {
      document = json::parse("fuzz", imported.text);
    } catch (const Error&) {
      __builtin_trap();  // whatever the file has for names and numbers, the text is JSON
    }
    json::Reader reader(document);
    read_model_file(reader);
    reader.throw_if_failed();
  } catch (const Error&) {
  }
  return 0;
}
