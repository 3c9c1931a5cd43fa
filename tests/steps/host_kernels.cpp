#include "steps/host_kernels.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "executors/cuda_planner/print/step_kernel.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

constexpr std::size_t kTexts = 12;  // of a translation unit

std::map<std::string, StepFunction>& kernels() {
  static std::map<std::string, StepFunction> table;
  return table;
}

std::string named(std::string text, const std::string& name) {
  const std::string_view placeholder = kKernelName;
  for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos; at += name.size())
    text.replace(at, placeholder.size(), name);
  return text;
}

// Throws what the compiler said, and the source that it said it of.
void run_compiler(const TemporaryFolder& folder, const std::string& source, const std::string& options) {
  const std::string messages = folder.file("messages"), root = source_folder();
  const std::string command = fmt::format(
      "{0} -std=c++20 -O0 -ffp-contract=off -w -fPIC -I{1}/tests/emulation/shim -I{1}/tests -I{1}/src -I{1}/include "
      "{2} {3} > {4} 2>&1",
      GRAPHRUN_HOST_COMPILER, root, options, source, messages);
  if (std::system(command.c_str()) != 0)
    throw std::runtime_error(content_of(messages).substr(0, 4000) + "\n" + content_of(source));
}

// What all units begin with, compiled before them: it takes as long as a few kernels. Both compilers take a header's
// .gch in its place.
const std::string& prelude() {
  static const TemporaryFolder folder;
  static const std::string header = [] {
    const std::string file = folder.write("prelude.h", cuda::step_prelude(MathMode::exact));
    run_compiler(folder, file, fmt::format("-x c++-header -o {}.gch", file));
    return file;
  }();
  return header;
}

// With a function of one type for each kernel: the arguments of two are of different sizes.
std::string unit(const std::vector<std::string>& texts) {
  std::string source;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string name = fmt::format("kernel_{}", i);
    source += named(texts[i], name);
    const bool in_slots = texts[i].find("= SlotArguments<") != std::string::npos;
    source +=
        fmt::format("extern \"C\" void run_{}(const void* a) {{ {}::{}({}static_cast<const {}::Arguments*>(a)); }}\n",
                    i, name, name, in_slots ? "" : "*", name);
  }
  return source;
}

void compile(const std::vector<std::string>& texts, StepFunction* to) {
  const TemporaryFolder folder;
  const std::string source = folder.write("kernels.cpp", unit(texts)), library = folder.file("kernels.so");
  run_compiler(folder, source, fmt::format("-include {} -shared -o {}", prelude(), library));
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) throw std::runtime_error(::dlerror());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    to[i].run = reinterpret_cast<void (*)(const void*)>(::dlsym(loaded, fmt::format("run_{}", i).c_str()));
    const void* const bytes = ::dlsym(loaded, fmt::format("kernel_{}_shared_bytes", i).c_str());
    if (to[i].run == nullptr || bytes == nullptr) throw std::runtime_error("a kernel is missing in its library");
    to[i].shared_bytes = *static_cast<const std::uint32_t*>(bytes);
  }
}

}  // namespace

void compile_steps(const std::vector<std::string>& texts) {
  const std::set<std::string> distinct(texts.begin(), texts.end());
  std::vector<std::string> missing;
  std::ranges::copy_if(distinct, std::back_inserter(missing),
                       [](const std::string& text) { return !kernels().contains(text); });
  std::vector<StepFunction> made(missing.size());
  std::string failure;
  const auto part = [&](std::size_t first) {  // every other one of the translation units
    for (std::size_t begin = first * kTexts; begin < missing.size(); begin += 2 * kTexts) {
      const auto from = missing.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto count = static_cast<std::ptrdiff_t>(std::min(kTexts, missing.size() - begin));
      compile({from, from + count}, made.data() + begin);
    }
  };
  std::thread second([&] {
    try {
      part(1);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  });
  try {
    part(0);
  } catch (...) {
    second.join();
    throw;
  }
  second.join();
  if (!failure.empty()) throw std::runtime_error(failure);
  for (std::size_t i = 0; i < missing.size(); ++i) kernels()[missing[i]] = made[i];
}

StepFunction step_function(const std::string& text) {
  if (!kernels().contains(text)) compile_steps({text});
  return kernels().at(text);
}

}  // namespace graphrun::test
