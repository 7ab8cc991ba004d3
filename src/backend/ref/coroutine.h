// A region of the IR that runs as a coroutine, so that a thread may stop in the middle of it.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace picokernel::backend {

// Runs when it is awaited; gives the operands of the region's yield.
class Region {
 public:
  struct promise_type {
    std::coroutine_handle<> outer;
    std::exception_ptr error;
    std::vector<uint64_t> yields;

    Region get_return_object() {
      return Region(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct ToOuter {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
          return h.promise().outer ? h.promise().outer : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return ToOuter{};
    }
    void return_value(std::vector<uint64_t> values) { yields = std::move(values); }
    void unhandled_exception() { error = std::current_exception(); }
  };

  Region(Region&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Region() {
    if (handle_) handle_.destroy();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> outer) noexcept {
    handle_.promise().outer = outer;
    return handle_;
  }
  std::vector<uint64_t> await_resume() {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return std::move(handle_.promise().yields);
  }

  std::coroutine_handle<> handle() const { return handle_; }
  bool done() const { return handle_.done(); }
  void rethrow() const {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
  }

 private:
  explicit Region(std::coroutine_handle<promise_type> h) : handle_(h) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace picokernel::backend
