// guard.h: wrapper for every function of c.h: no exception escapes, and errors become a gr_error.
// Contract: guarded() runs f and returns null, or the error that f threw. The out-of-memory error needs no allocation.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "graphrun/c.h"
#include "graphrun/error.h"

struct gr_error {
  graphrun::ErrorKind kind;
  const char* message;
  const char* json;
};

namespace graphrun::c_api {

// Converts the exception that is being handled. Call it only within a handler.
gr_error* caught() noexcept;

template <class F>
gr_error* guarded(F f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return caught();
  }
}

// Dereferences `pointer`; throws Error with the name of the argument if it is null.
[[noreturn]] void reject_null(std::string_view name);
template <class T>
T& checked(T* pointer, std::string_view name) {
  if (pointer == nullptr) reject_null(name);
  return *pointer;
}

char* owned_text(std::string_view text);  // for gr_text_free

// Copy of the caller's struct with every field that this library knows. Fields beyond the caller's struct_size are 0.
template <class T>
T known_fields(const T* given, std::string_view name) {
  T all{};
  if (given == nullptr) return all;
  if (given->struct_size < sizeof(std::size_t))
    throw Error(ErrorKind::input, "c.struct_size", std::string(name) + ": struct_size is not set", "= sizeof of it");
  std::memcpy(&all, given, given->struct_size < sizeof(T) ? given->struct_size : sizeof(T));
  return all;
}
// Copies `all` back, up to the caller's struct_size, which stays unchanged.
template <class T>
void give_fields(const T& all, T* to, std::string_view name) {
  if (to == nullptr) return;
  const std::size_t size = known_fields(to, name).struct_size;
  T filled = all;
  filled.struct_size = size;
  std::memcpy(to, &filled, size < sizeof(T) ? size : sizeof(T));
}

}  // namespace graphrun::c_api
