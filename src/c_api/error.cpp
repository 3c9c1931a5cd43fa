// error.cpp: gr_error, and the conversion of exceptions to it.
#include <array>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/json_writer.h"
#include "c_api/guard.h"

namespace graphrun::c_api {
namespace {

// Static: returning it allocates nothing, and it is never freed.
constinit gr_error out_of_memory{ErrorKind::device, "out of memory",
                                 "[{\"code\": \"memory.host\", \"message\": \"out of memory\"}]"};

// All other errors; owns their strings.
struct OwnedError : gr_error {
  OwnedError(ErrorKind of, std::string message_text, std::string json_text)
      : gr_error{of, nullptr, nullptr}, texts{std::move(message_text), std::move(json_text)} {
    message = texts[0].c_str();
    json = texts[1].c_str();
  }
  std::array<std::string, 2> texts;
};

std::string json_of(const Error& error) {
  JsonWriter json(JsonWriter::Spacing::after_signs);
  json.begin_array();
  for (const Diagnostic& one : error.diagnostics()) {
    json.begin_object().member("code", one.code).member("message", one.message).member("hint", one.hint);
    json.member("file", one.file).member("line", one.line).member("column", one.column);
    json.member("pointer", one.pointer).member("source_line", one.source_line).end_object();
  }
  return json.end_array().text();
}

gr_error* made(const Error& error) {
  return new OwnedError(error.kind(), error.what(), json_of(error));
}

}  // namespace

gr_error* caught() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      return made(error);
    } catch (const std::bad_alloc&) {
      return &out_of_memory;
    } catch (const std::exception& error) {  // a bug in graphrun, such as a std::logic_error
      return made(Error(ErrorKind::run, "internal", error.what(), "this is a bug in graphrun: please report it"));
    } catch (...) {
      return made(Error(ErrorKind::run, "internal", "unknown exception"));
    }
  } catch (...) {  // out of memory while making the error
    return &out_of_memory;
  }
}

void reject_null(std::string_view name) {
  throw Error(ErrorKind::input, "c.null", std::string(name) + " is NULL");
}

char* owned_text(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace graphrun::c_api

using namespace graphrun;

uint32_t gr_abi_version(void) {
  return GR_ABI_VERSION;
}
const char* gr_version(void) {
  return GRAPHRUN_VERSION;
}

gr_kind gr_error_kind(const gr_error* error) {
  const ErrorKind kind = error == nullptr ? ErrorKind::run : error->kind;
  switch (kind) {
    case ErrorKind::run:
      return GR_RUN;
    case ErrorKind::input:
      return GR_INPUT;
    case ErrorKind::check:
      return GR_CHECK;
    case ErrorKind::device:
      return GR_DEVICE;
  }
  return GR_RUN;
}
const char* gr_error_message(const gr_error* error) {
  return error == nullptr ? "" : error->message;
}
const char* gr_error_json(const gr_error* error) {
  return error == nullptr ? "[]" : error->json;
}
void gr_error_free(gr_error* error) {
  if (error != &c_api::out_of_memory) delete static_cast<c_api::OwnedError*>(error);
}
void gr_text_free(char* text) {
  std::free(text);
}
