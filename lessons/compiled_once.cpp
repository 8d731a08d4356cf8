#define LOOKBACK_ONCE  // not extern: here
#include "compiled_once.hpp"
