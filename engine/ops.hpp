// Every op.
#pragma once
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/gather.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/recurrent.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/ops/regularise.hpp"
#include "engine/ops/softmax.hpp"
