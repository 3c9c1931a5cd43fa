// Requests of strangers: libFuzzer's bytes as the head of a request, then its body.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graphrun/error.h"
#include "studio/access.h"
#include "studio/body.h"
#include "studio/http.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace graphrun;
  static const studio::Access access(8000);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const studio::ParsedHead parsed = studio::parse_head(bytes);
  if (parsed.bytes > size) __builtin_trap();
  if (parsed.status != 0 || parsed.bytes == 0) return 0;
  if (access.judge(parsed.request) != studio::Access::Verdict::stranger) __builtin_trap();
  try {
    const studio::Body body(bytes.substr(parsed.bytes));
  } catch (const Error&) {
  }
  return 0;
}
