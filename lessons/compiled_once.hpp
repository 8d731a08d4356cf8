// What nearly every lesson uses of templates, compiled once (compiled_once.cpp) instead of once a lesson: a sixth of a
// lesson's compile time. CMake puts this file before each lesson; none includes it.
#pragma once
#include "layers/gru.hpp"
#include "layers/lstm.hpp"
#include "layers/rnn.hpp"
#include "layers/sequence.hpp"
#include "lessons/lesson.hpp"
#include "lessons/terminal.hpp"

#ifndef LOOKBACK_ONCE
#define LOOKBACK_ONCE extern
#endif

LOOKBACK_ONCE template class std::basic_string<char>;
LOOKBACK_ONCE template class std::vector<double>;
LOOKBACK_ONCE template class std::vector<std::int64_t>;
LOOKBACK_ONCE template class std::vector<std::size_t>;
LOOKBACK_ONCE template class std::vector<std::string>;
LOOKBACK_ONCE template class std::vector<std::vector<std::string>>;

namespace lookback {
LOOKBACK_ONCE template class SmallVector<std::size_t, max_axes>;
LOOKBACK_ONCE template class SmallVector<std::ptrdiff_t, max_axes>;
LOOKBACK_ONCE template Sequence<RNN> unroll(const RNN&, const Tensor&, const RNN::State&, const UnrollOptions&);
LOOKBACK_ONCE template Sequence<LSTM> unroll(const LSTM&, const Tensor&, const LSTM::State&, const UnrollOptions&);
LOOKBACK_ONCE template Sequence<GRU> unroll(const GRU&, const Tensor&, const GRU::State&, const UnrollOptions&);
}  // namespace lookback

LOOKBACK_ONCE template class std::vector<lookback::Tensor>;
LOOKBACK_ONCE template class std::vector<lookback::Trace::Series>;
LOOKBACK_ONCE template class std::vector<lookback::terminal::Curve>;
