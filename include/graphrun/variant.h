// variant.h: a std::variant that may be copied when memory runs out.
// Contract: std::variant's. It copies the alternative itself: the copy constructor of libstdc++ 12's variant destroys
// what it has not made when there is no memory for the copy.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

namespace graphrun {

template <class... Kinds>
struct Variant : std::variant<Kinds...> {
  using Base = std::variant<Kinds...>;
  using Base::Base;
  using Base::operator=;
  Variant() = default;
  Variant(const Variant& other) : Base(copy_of(other)) {}
  Variant(Variant&&) noexcept = default;
  Variant& operator=(const Variant& other) {
    Base::operator=(copy_of(other));
    return *this;
  }
  Variant& operator=(Variant&&) noexcept = default;
  ~Variant() = default;

 private:
  static Base copy_of(const Base& other) {
    return std::visit(
        [](const auto& value) { return Base(std::in_place_type<std::remove_cvref_t<decltype(value)>>, value); }, other);
  }
};

}  // namespace graphrun
