// safetensors_fuzz.cpp: libFuzzer's entry: bytes as a safetensors file, and as the header of one; all of it is read.
// cmake -DGRAPHRUN_FUZZER=ON with clang; build/…/bin/fuzz_safetensors corpus/
#include <cstdint>
#include <memory>
#include <string>

#include "data/formats/safetensors.h"
#include "graphrun/error.h"

using namespace graphrun;

namespace {

void read_all(std::string bytes) {
  try {
    const data::Safetensors file("fuzz", std::make_shared<const std::string>(std::move(bytes)));
    for (const std::string& name : file.names()) {
      try {
        file.read(name);
      } catch (const Error&) {  // of a dtype that is not read, say: the others may be
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string given(reinterpret_cast<const char*>(bytes), size);
  read_all(given);
  // The same with a length that is right: few guesses are.
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(size >> (8 * i) & 0xFFu);
  read_all(length + given + std::string(64, '\1'));
  return 0;
}
