#include "lessons/measure.hpp"
#include <algorithm>
#include <cmath>

namespace lookback::measure {

std::vector<double> range(std::size_t first, std::size_t last) {
    std::vector<double> x;
    for (std::size_t i = first; i <= last; ++i) x.push_back(double(i));
    return x;
}

double slope(const std::vector<double>& x, const std::vector<double>& y) {
    const double x_mean = mean(x), y_mean = mean(y);
    double xx = 0, xy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        xx += (x[i] - x_mean) * (x[i] - x_mean);
        xy += (x[i] - x_mean) * (y[i] - y_mean);
    }
    return xy / xx;
}

double mean(const std::vector<double>& x) {
    double sum = 0;
    for (const double v : x) sum += v;
    return sum / double(x.size());
}

double standard_error(const std::vector<double>& x) {
    const double middle = mean(x), n = double(x.size());
    double squares = 0;
    for (const double v : x) squares += (v - middle) * (v - middle);
    return x.size() < 2 ? std::nan("") : std::sqrt(squares / (n - 1) / n);
}

double median(std::vector<double> x) {
    if (x.empty()) return std::nan("");
    std::sort(x.begin(), x.end());
    return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2;
}

double length(const std::vector<double>& v) {
    double s = 0;
    for (const double x : v) s = std::hypot(s, x);  // squares would vanish at 1e-162
    return s;
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> d = b;
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= a[i];
    const double difference = length(d);
    return difference == 0 ? 0 : difference / length(b);
}

double largest_difference(const Array& a, const Array& b) {
    double most = a.shape() == b.shape() ? 0 : std::nan("");
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const double difference = std::abs(double(a.data()[i]) - double(b.data()[i]));
        most = std::isnan(difference) ? difference : std::max(most, difference);  // NaN stays
    }
    return most;
}

}  // namespace lookback::measure
