#include "data/formats/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/input_limit.h"
#include "base/text.h"
#include "data/formats/png.h"
#include "data/sources/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_images(const std::string& path, std::string_view what, std::string hint = {}) {
  throw Error(ErrorKind::input, "data.images", fmt::format("'{}' {}", path, what), std::move(hint));
}

bool has_png_name(const std::string& name) {
  std::string ending = name.size() < 4 ? "" : name.substr(name.size() - 4);
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending == ".png";
}

// Sorted names of the entries: folders, files. Hidden ones are omitted.
std::pair<std::vector<std::string>, std::vector<std::string>> entries_of(const fs::path& folder) {
  std::pair<std::vector<std::string>, std::vector<std::string>> names;
  std::error_code error, ignored;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) (entry->is_directory(ignored) ? names.first : names.second).push_back(name);
  }
  if (error) fail_images(folder.string(), fmt::format("cannot be read: {}", error.message()));
  std::sort(names.first.begin(), names.first.end());
  std::sort(names.second.begin(), names.second.end());
  return names;
}

void append_class(ImageFolder& all, const std::string& name) {
  const fs::path path = fs::path(all.path) / name;
  const auto [folders, files] = entries_of(path);
  if (!folders.empty()) fail_images((path / folders.front()).string(), "is a folder inside the folder of a class");
  if (files.empty()) fail_images(path.string(), "is the folder of a class, and has no PNG files");
  for (const std::string& file : files) {
    if (!has_png_name(file)) fail_images((path / file).string(), "is not a .png file", "move it out of the folder");
    all.files.push_back(name + "/" + file);
    all.classes.push_back(name);
  }
}

std::string file_of(const ImageFolder& folder, std::size_t i) {
  return (fs::path(folder.path) / folder.files[i]).string();
}

std::string size_text(const Shape& image) {
  return fmt::format("{} x {} pixels {}", image[1], image[0], image[2] == 1 ? "in grey" : "in color");
}

// Names as text cells.
class NameCells final : public Cells {
 public:
  NameCells(std::shared_ptr<const ImageFolder> folder, bool are_classes)
      : folder_(std::move(folder)), names_(are_classes ? folder_->classes : folder_->files) {}

  std::int64_t rows() const override { return std::ssize(names_); }
  bool is_missing(std::int64_t) const override { return false; }
  std::string_view text(std::int64_t row) const override { return names_[static_cast<std::size_t>(row)]; }
  double number(std::int64_t row) const override {
    if (const std::optional<double> number = parse_number<double>(text(row))) return *number;
    fail(row, fmt::format("'{}' is not a number", text(row)), "the transform [\"one_hot\"] makes classes of names");
  }
  Error error(std::int64_t row, std::string_view what, std::string hint) const override {
    return Error(ErrorKind::input, "data.value",
                 fmt::format("'{}': {}", file_of(*folder_, static_cast<std::size_t>(row)), what), std::move(hint));
  }

 private:
  std::shared_ptr<const ImageFolder> folder_;
  const std::vector<std::string>& names_;
};

}  // namespace

ImageFolder list_images(const std::string& path, bool needs_classes) {
  ImageFolder all{path, {}, {}, {}};
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (needs_classes) fail_images(path, "is not a folder", "\"images\" is a folder with one folder for each class");
    all.path = fs::path(path).parent_path().string();
    all.files = {fs::path(path).filename().string()};
  } else {
    const auto [folders, files] = entries_of(path);
    for (const std::string& name : folders) append_class(all, name);
    for (const std::string& file : files) {
      if (!has_png_name(file)) continue;
      if (needs_classes || !folders.empty())
        fail_images((fs::path(path) / file).string(), "is not in the folder of a class",
                    fmt::format("its class is the name of a folder in '{}'", path));
      all.files.push_back(file);
    }
    if (all.files.empty())
      fail_images(path, "has no PNG files",
                  needs_classes ? "\"images\" is a folder with one folder of PNG files for each class" : "");
  }
  const std::string first = file_of(all, 0);
  all.shape = {std::ssize(all.files)};
  const Shape image = read_png(first, read_file(first), {}, nullptr);
  for (const std::int64_t extent : image.dims()) all.shape.push_back(extent);
  return all;
}

std::vector<std::uint8_t> read_pixels(const ImageFolder& folder) {
  const Shape image(folder.shape.dims().subspan(1));
  const auto size = static_cast<std::uint64_t>(image.elements());
  const std::uint64_t bytes = saturating_product(size, folder.files.size());
  require_within_input_limit(bytes, fmt::format("{} images of '{}'", folder.files.size(), folder.path));
  std::vector<std::uint8_t> pixels(bytes);
  for (std::size_t i = 0; i < folder.files.size(); ++i) {
    const std::string file = file_of(folder, i);
    const Shape own = read_png(file, read_file(file), image, pixels.data() + i * size);
    if (own != image)
      fail_images(file, fmt::format("has {}, and '{}' has {}", size_text(own), file_of(folder, 0), size_text(image)),
                  "all images of a folder have the same size and color type");
  }
  return pixels;
}

Loaded read_images(SourceContext& context) {
  Loaded loaded;
  const std::optional<std::string> name = context.reader.string(context.value);
  if (!name) return loaded;
  std::vector<NamedArray>& arrays = loaded.rows.arrays;
  if (!context.opens) {
    for (const char* array : {"image", "class", "file"}) arrays.push_back({array, context.value, {}});
    return loaded;
  }
  const auto folder = std::make_shared<const ImageFolder>(
      list_images(context.files.find(*name, Files::Find::folder_too), !context.is_other));
  const auto read = [folder] { return std::make_shared<const Array>(Array{folder->shape, read_pixels(*folder)}); };
  arrays.push_back({"image", context.value, read, folder->shape});
  arrays.back().has_bytes = true;
  for (const bool are_classes : {true, false}) {
    if (are_classes && folder->classes.empty()) continue;
    arrays.push_back(column_of(are_classes ? "class" : "file", context.value,
                               std::make_shared<const NameCells>(folder, are_classes), {}));
  }
  return loaded;
}

}  // namespace graphrun::data
