// model_file_fuzz.cpp: libFuzzer's entry: bytes as a model file, read, built, said canonically and read again.
// cmake -DGRAPHRUN_FUZZER=ON with clang; build/…/bin/fuzz_model_file corpus/ models/
#include <cstdint>
#include <string>

#include "base/json_reader.h"
#include "base/json_text.h"
#include "graph/frontend/format/model_file.h"
#include "graphrun/error.h"

using namespace graphrun;

namespace {

std::string canonical_text(std::string text) {
  const json::Document document = json::parse("fuzz", std::move(text));
  json::Reader reader(document);
  Model model = read_model_file(reader).model;
  reader.throw_if_failed();
  return json::text(canonical(reader, model));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string once;
  try {
    once = canonical_text(std::string(reinterpret_cast<const char*>(bytes), size));
  } catch (const Error&) {
    return 0;
  }
  if (canonical_text(once) != once) __builtin_trap();
  return 0;
}
