// archives.h: IDX, NPY, PNG, gzip and zip files made byte by byte, so that a test can make wrong ones.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace graphrun::test {

inline std::string idx(char type, std::initializer_list<std::uint32_t> extents, const std::string& values) {
  std::string bytes{0, 0, type, static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (const unsigned shift : {24u, 16u, 8u, 0u}) bytes += static_cast<char>(extent >> shift & 0xFFu);
  }
  return bytes + values;
}

inline std::string deflated(const std::string& bytes, int window) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(bytes.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string gzip(const std::string& bytes) {
  return deflated(bytes, 15 + 16);
}

inline std::string big_endian(std::size_t number) {
  std::string bytes;
  for (const unsigned shift : {24u, 16u, 8u, 0u}) bytes += static_cast<char>(number >> shift & 0xFFu);
  return bytes;
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(data.size()) + body + big_endian(crc);
}

// `type`: 0 grey, 2 RGB, 3 palette, 4 and 6 with alpha. `rows`: a filter byte and the samples of each row. `before`:
// chunks in front of the pixels.
inline std::string png(std::size_t width, std::size_t height, char depth, char type, const std::string& rows,
                       const std::string& before = "", bool interlaced = false) {
  const std::string header = big_endian(width) + big_endian(height) + depth + type + std::string(2, '\0');
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header + static_cast<char>(interlaced)) + before +
         png_chunk("IDAT", deflated(rows, 15)) + png_chunk("IEND", "");
}

// Rows of the samples of an image, `channels` bytes a pixel, in file order. Interlaced: of the seven images of Adam7.
inline std::string png_rows(std::size_t width, const std::string& samples, std::size_t channels, bool interlaced) {
  constexpr std::size_t kAdam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};  // x, y and their steps
  constexpr std::size_t kPlain[1][4] = {{0, 0, 1, 1}};
  const std::size_t height = samples.size() / (width * channels);
  std::string rows;
  for (std::size_t pass = 0; pass < (interlaced ? 7 : 1); ++pass) {
    const auto [left, top, dx, dy] = interlaced ? kAdam7[pass] : kPlain[pass];
    for (std::size_t y = top; y < height && left < width; y += dy) {
      rows += '\0';
      for (std::size_t x = left; x < width; x += dx) rows += samples.substr((y * width + x) * channels, channels);
    }
  }
  return rows;
}

inline std::string npy(const std::string& type, const std::string& shape, const std::string& values,
                       const std::string& order = "False") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize(118, ' ');
  header.back() = '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + values;
}

template <class T>
inline std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xFFu);
  return text;
}

// A zip of one file; `method` 8 deflates. As NumPy does, the sizes of the local header are left to the directory.
inline std::string zip(const std::string& name, const std::string& bytes, int method) {
  const std::string stored = method == 8 ? deflated(bytes, -15) : bytes;
  const std::uint64_t crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  const std::string extra(20, 'e');
  std::string zip = "PK\x03\x04" + little(45, 2) + little(0, 2) + little(static_cast<std::uint64_t>(method), 2) +
                    little(0, 4) + little(crc, 4) + little(0xFFFFFFFF, 4) + little(0xFFFFFFFF, 4) +
                    little(name.size(), 2) + little(extra.size(), 2) + name + extra + stored;
  const std::size_t directory = zip.size();
  zip += "PK\x01\x02" + little(45, 2) + little(45, 2) + little(0, 2) + little(static_cast<std::uint64_t>(method), 2) +
         little(0, 4) + little(crc, 4) + little(stored.size(), 4) + little(bytes.size(), 4) + little(name.size(), 2) +
         little(0, 2) + little(0, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(0, 4) + name;
  const std::size_t size = zip.size() - directory;
  return zip + "PK\x05\x06" + little(0, 4) + little(1, 2) + little(1, 2) + little(size, 4) + little(directory, 4) +
         little(0, 2);
}

}  // namespace graphrun::test
