// What is made once for the process: nobody waits for what another key needs. Needs no device.
#include "executors/cuda/once_per_key.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace graphrun::cuda {
namespace {

TEST(OncePerKey, KeysDoNotWaitForEachOther) {
  OncePerKey<std::string, int> made;
  std::promise<void> other_is_there;
  std::future<void> other = other_is_there.get_future();
  std::thread slow([&] {
    made.get("slow", [&] {
      other.wait();
      return 1;
    });
  });
  EXPECT_EQ(made.get("quick", [] { return 2; }), 2);
  other_is_there.set_value();
  slow.join();
}

TEST(OncePerKey, MakesOneValueForAllWhoAsk) {
  OncePerKey<std::string, int> made;
  std::atomic<int> makers{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const int got = made.get("key", [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return ++makers;
      });
      EXPECT_EQ(got, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(makers.load(), 1);
}

TEST(OncePerKey, WhatFailedIsTriedAgain) {
  OncePerKey<std::string, int> made;
  EXPECT_THROW(made.get("key", []() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(made.get("key", [] { return 7; }), 7);
}

}  // namespace
}  // namespace graphrun::cuda
