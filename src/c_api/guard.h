// guard.h: what every function of c.h is written in: no exception leaves it, and mistakes become a gr_error.
// Contract: guarded() runs f and gives null, or the error that f threw. Out of memory is an error that needs none.
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

// To be called within a handler: the error for the exception that is being handled.
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

// What `pointer` points to; throws Error that names the argument where it is null.
[[noreturn]] void reject_null(std::string_view name);
template <class T>
T& checked(T* pointer, std::string_view name) {
  if (pointer == nullptr) reject_null(name);
  return *pointer;
}

char* owned_text(std::string_view text);  // for gr_text_free

// A struct of the caller's as this library knows it: fields that the caller does not have are 0.
template <class T>
T known_fields(const T* given, std::string_view name) {
  T all{};
  if (given == nullptr) return all;
  if (given->struct_size < sizeof(std::size_t))
    throw Error(ErrorKind::input, "c.struct_size", std::string(name) + ": struct_size is not set", "= sizeof of it");
  std::memcpy(&all, given, given->struct_size < sizeof(T) ? given->struct_size : sizeof(T));
  return all;
}
// Back again, without what the caller does not have; struct_size stays.
template <class T>
void give_fields(const T& all, T* to, std::string_view name) {
  if (to == nullptr) return;
  const std::size_t size = known_fields(to, name).struct_size;
  T filled = all;
  filled.struct_size = size;
  std::memcpy(to, &filled, size < sizeof(T) ? size : sizeof(T));
}

}  // namespace graphrun::c_api
