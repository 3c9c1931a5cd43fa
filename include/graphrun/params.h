// params.h: what a kernel needs to know beside its operands: one plain struct for each family of ops with attributes.
// Contract: a Params holds one struct of params/*.h, knows which, and is plain bytes: it travels to a device unchanged.
// Equality and printing go by the fields, which a struct's `describe` visits in order. Shapes and dtypes of operands
// are not repeated here; a kernel gets them as TensorType.
// Leaves to others: the structs (params/), what reads the lists of them (params/all.h), which few files include:
// a new struct rebuilds those and the readers of its header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "graphrun/export.h"

namespace graphrun {

enum class ParamsKind : std::uint32_t {};

// The kind of a struct follows from its name (FNV-1a), so that there is no list to number them by. params.cpp does not
// compile when two are equal.
constexpr ParamsKind params_kind(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
  return ParamsKind{hash};
}

// Ops without attributes.
struct NoParams {
  static constexpr ParamsKind kKind{};
  constexpr void describe(auto&&) const {}
  friend bool operator==(const NoParams&, const NoParams&) = default;
};

// The structs of one header of params/; what can be done with all of them is in params/all.h.
template <class... T>
struct ParamsList;

class Params {
 public:
  Params() = default;  // NoParams
  template <class T>
  requires std::is_same_v<decltype(T::kKind), const ParamsKind> Params(const T& value) : kind_(T::kKind) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(bytes_) && alignof(T) <= 8);
    std::memcpy(bytes_, &value, sizeof(T));
  }

  ParamsKind kind() const { return kind_; }

  // The struct that is held; null, or std::logic_error, when it is another.
  template <class T>
  const T* get_if() const {
    return kind_ == T::kKind ? reinterpret_cast<const T*>(bytes_) : nullptr;
  }
  template <class T>
  const T& as() const {
    const T* const held = get_if<T>();
    if (held == nullptr) fail();
    return *held;
  }
  template <class T>
  T* get_if() {
    return const_cast<T*>(static_cast<const Params*>(this)->get_if<T>());
  }
  template <class T>
  T& as() {
    return const_cast<T&>(static_cast<const Params*>(this)->as<T>());
  }

  friend GRAPHRUN_API bool operator==(const Params& a, const Params& b);

 private:
  [[noreturn]] GRAPHRUN_API static void fail();

  alignas(8) unsigned char bytes_[40] = {};
  ParamsKind kind_{};
};

GRAPHRUN_API std::string to_string(const Params& params);  // " transpose_a=true transpose_b=false", "" for none

}  // namespace graphrun
