// The trained model of dates, asked: what it answers, where it looked, and how training moved the gradient there.
#pragma once
#include <string>
#include "lessons/lesson.hpp"

namespace lookback {

// throws ValueError on a text the model can't read
void show_date(Lesson& lesson, const std::string& text);

}  // namespace lookback
