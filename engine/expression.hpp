// What op authors add to array.hpp: xtensor's functions of arrays (xt::exp, xt::where, …), and noalias, which assigns
// without a temporary. Rules that keep it right and fast:
//   - no `auto` for an array expression: it is lazy and refers to its operands; only Array or Tensor leaves a function
//   - no reducer (xt::sum …) inside a broadcast: it reads out of bounds; kernels.hpp reduces
//   - no `a += b` without a check of shapes: it silently reshapes a; Cotangent checks
#pragma once
#include "array.hpp"
#if __has_include(<xtensor/core/xmath.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/core/xoperation.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xoperation.hpp>
#endif
