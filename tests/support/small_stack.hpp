// Runs f on a thread with a stack of 256 KiB: what recurses over a long tape dies here.
#pragma once
#include <exception>
#include <functional>

namespace lookback::test {

void on_small_stack(const std::function<void()>& f);  // rethrows what f threw

}  // namespace lookback::test
