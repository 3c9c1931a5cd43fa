// png.cpp: read_png(). libpng reports an error by longjmp, so the functions between setjmp and its callbacks have no
// objects with destructors.
#include "data/formats/png.h"

#include <fmt/format.h>

#include "data/formats/inflate.h"
#include "graphrun/error.h"

#ifdef GRAPHRUN_PNG
#include <dlfcn.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#endif

namespace graphrun::data {
namespace {

[[noreturn]] void fail_png(const std::string& path, std::string_view what, std::string hint = {}) {
  throw Error(ErrorKind::input, "data.png", fmt::format("'{}': {}", path, what), std::move(hint));
}

}  // namespace

#ifdef GRAPHRUN_PNG
namespace {

constexpr const char* kPngLibrary = "libpng16.so.16";

struct PngFunctions {
  template <class Function>
  Function find(const char* name) const {
    return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
  }

  void* library = dlopen(kPngLibrary, RTLD_NOW | RTLD_LOCAL);
  // NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define X(name) decltype(&png_##name) name = find<decltype(name)>("png_" #name);
  // clang-format off
  X(create_read_struct) X(create_info_struct) X(destroy_read_struct) X(get_error_ptr) X(get_io_ptr) X(set_read_fn)
  X(set_crc_action) X(read_info) X(get_IHDR) X(get_valid) X(set_palette_to_rgb) X(set_expand_gray_1_2_4_to_8)
  X(set_interlace_handling) X(read_update_info) X(get_rowbytes) X(read_row) X(read_end)
  // clang-format on
#undef X
};

// The library is never closed.
const PngFunctions& png() {
  static const PngFunctions* const loaded = new PngFunctions;
  return *loaded;
}

struct PngState {
  const char* next = nullptr;  // unread bytes of the file
  std::size_t left = 0;
  std::uint32_t expected[3] = {}, found[3] = {};  // height, width, channels
  std::uint8_t* pixels = nullptr;
  std::uint64_t stored = 0;        // size of the rows in the file, decompressed
  std::uint64_t max_stored = 0;    // limit, by the size of the file
  const char* rejected = nullptr;  // property that is not supported
  char error[128] = {};
  std::jmp_buf jump = {};
};

[[noreturn]] void on_png_error(png_structp reader, png_const_charp message) {
  auto& state = *static_cast<PngState*>(png().get_error_ptr(reader));
  std::strncpy(state.error, message, sizeof(state.error) - 1);
  std::longjmp(state.jump, 1);
}

void on_png_warning(png_structp, png_const_charp) {}

void read_png_bytes(png_structp reader, png_bytep to, std::size_t count) {
  auto& state = *static_cast<PngState*>(png().get_io_ptr(reader));
  if (count > state.left) on_png_error(reader, "the file is cut short");
  std::memcpy(to, state.next, count);
  state.next += count;
  state.left -= count;
}

void read_png_image(png_structp reader, png_infop info, PngState& state) {
  png().set_crc_action(reader, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png().read_info(reader, info);
  std::uint32_t width = 0, height = 0;
  int depth = 0, type = 0;
  png().get_IHDR(reader, info, &width, &height, &depth, &type, nullptr, nullptr, nullptr);
  state.found[0] = height;
  state.found[1] = width;
  state.found[2] = (type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
  state.stored = std::uint64_t{height} * png().get_rowbytes(reader, info);
  if (depth == 16) state.rejected = "16 bits per channel";
  if ((type & PNG_COLOR_MASK_ALPHA) != 0 || png().get_valid(reader, info, PNG_INFO_tRNS) != 0)
    state.rejected = "transparent pixels";
  if (state.rejected != nullptr || state.stored > state.max_stored) return;
  if (!std::equal(state.found, state.found + 3, state.expected)) return;
  if (type == PNG_COLOR_TYPE_PALETTE) png().set_palette_to_rgb(reader);
  if (type == PNG_COLOR_TYPE_GRAY) png().set_expand_gray_1_2_4_to_8(reader);
  const int passes = png().set_interlace_handling(reader);
  png().read_update_info(reader, info);
  const std::size_t row = std::size_t{width} * state.found[2];
  if (png().get_rowbytes(reader, info) != row) on_png_error(reader, "its rows have an unexpected size");
  for (int pass = 0; pass < passes; ++pass) {
    for (std::uint32_t y = 0; y < height; ++y) png().read_row(reader, state.pixels + y * row, nullptr);
  }
  png().read_end(reader, nullptr);
}

void run_png(PngState& state) {
  png_structp reader = png().create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_png_error, on_png_warning);
  png_infop info = reader == nullptr ? nullptr : png().create_info_struct(reader);
  if (info == nullptr) {
    std::strncpy(state.error, "libpng does not start", sizeof(state.error) - 1);
  } else if (setjmp(state.jump) == 0) {
    png().set_read_fn(reader, &state, read_png_bytes);
    read_png_image(reader, info, state);
  }
  if (reader != nullptr) png().destroy_read_struct(&reader, &info, nullptr);
}

}  // namespace

Shape read_png(const std::string& path, std::string_view bytes, const Shape& expected, std::uint8_t* pixels) {
  if (png().library == nullptr || png().read_end == nullptr)
    fail_png(path, fmt::format("{} reads PNG files, and does not load", kPngLibrary),
             "Debian and Ubuntu: apt-get install libpng16-16");
  if (!bytes.starts_with("\x89PNG\r\n\x1a\n")) fail_png(path, "not a PNG file");
  PngState state;
  state.next = bytes.data();
  state.left = bytes.size();
  state.max_stored = max_inflated(bytes.size());
  state.pixels = pixels;
  for (int i = 0; i < expected.rank(); ++i) state.expected[i] = static_cast<std::uint32_t>(expected[i]);
  run_png(state);
  if (state.error[0] != '\0') fail_png(path, fmt::format("the PNG file is damaged: {}", state.error));
  if (state.rejected != nullptr)
    fail_png(path, fmt::format("PNG files with {} are not supported", state.rejected),
             "convert it to 8 bits per channel, grey or RGB");
  if (state.stored > state.max_stored)
    fail_png(path, fmt::format("the PNG header says {} x {} pixels, but the file has {} bytes", state.found[1],
                               state.found[0], bytes.size()));
  return {state.found[0], state.found[1], state.found[2]};
}

#else

Shape read_png(const std::string& path, std::string_view, const Shape&, std::uint8_t*) {
  fail_png(path, "this graphrun was built without libpng, so it reads no PNG files",
           "install libpng-dev and build graphrun again");
}

#endif

}  // namespace graphrun::data
