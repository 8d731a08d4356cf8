#include "kernels.hpp"
#include <cmath>
#include <cstring>
#include <span>
#include "blas.hpp"
#include "expression.hpp"

namespace lookback {

Layout around(const Shape& shape, std::size_t axis) {
    Layout layout{1, shape[axis], 1};
    for (std::size_t k = 0; k < axis; ++k) layout.outer *= shape[k];
    for (std::size_t k = axis + 1; k < shape.size(); ++k) layout.inner *= shape[k];
    return layout;
}

double sum_of_squares(const Array& x) {
    const Real* p = x.data();
    return sum_of(x.size(), [p](std::size_t i) { return double(p[i]) * double(p[i]); });
}
double norm(const Array& x) {
    const double plain = sum_of_squares(x);
    if (plain > 1e-280 && plain < 1e280) return std::sqrt(plain);
    // Squares leave the range of doubles long before lengths do: measured in units of the largest (a power of 2,
    // exact).
    const Real* p = x.data();
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(double(p[i])));
    if (most == 0 || !std::isfinite(most) || std::isnan(plain)) return std::sqrt(plain);
    const double unit = std::exp2(std::ilogb(most));
    return unit *
           std::sqrt(sum_of(x.size(), [=](std::size_t i) { return double(p[i]) / unit * (double(p[i]) / unit); }));
}

// ---- arithmetic, activation and reduce

// A choice of factors, not of products: g++ vectorises only this one.
static inline Real chain(Real y_bar, Real slope) { return y_bar * (y_bar == 0 ? 0 : slope); }
static void chain(std::size_t n, const Real* y_bar, const Real* slope, Real* x_bar) {
    for (std::size_t i = 0; i < n; ++i) x_bar[i] = chain(y_bar[i], slope[i]);
}
Array chain(const Array& y_bar, const Array& slope) {
    Array x_bar = Array::from_shape(slope.shape());
    chain(slope.size(), y_bar.data(), slope.data(), x_bar.data());
    return x_bar;
}
Array chain(const Array& y_bar, Array&& slope) {
    chain(slope.size(), y_bar.data(), slope.data(), slope.data());
    return std::move(slope);
}

Array chain_quotient(const Array& y_bar, const Array& divisor) {
    Array x_bar = Array::from_shape(divisor.shape());
    for (std::size_t i = 0; i < x_bar.size(); ++i)
        x_bar.data()[i] = y_bar.data()[i] / (y_bar.data()[i] == 0 ? 1 : divisor.data()[i]);
    return x_bar;
}

// Joins the terms along n, start first: put(place in y, result), where term(place in x, place in y).
template <class T, class Term, class Join, class Put>
static void fold(const Layout& at, T start, Term term, Join join, Put put) {
    const std::size_t n = at.n, inner = at.inner;
    if (inner == 1) {
        for (std::size_t o = 0; o < at.outer; ++o)
            put(o, lanes(
                       n, start, [&](std::size_t j) { return T(term(o * n + j, o)); }, join));
        return;
    }
    constexpr std::size_t width = 64;  // columns at a time: their results stay in the cache
    T result[width];
    for (std::size_t o = 0; o < at.outer; ++o)
        for (std::size_t from = 0; from < inner; from += width) {
            const std::size_t columns = std::min(width, inner - from), y = o * inner + from;
            std::fill(result, result + columns, start);
            for (std::size_t j = 0; j < n; ++j)
                for (std::size_t i = 0, x = (o * n + j) * inner + from; i < columns; ++i)
                    result[i] = join(result[i], T(term(x + i, y + i)));
            for (std::size_t i = 0; i < columns; ++i) put(y + i, result[i]);
        }
}
static auto elements(const Array& x) {
    return [p = x.data()](std::size_t k, std::size_t) { return p[k]; };
}
static auto into(Array& y) {
    return [p = y.data()](std::size_t r, auto value) { p[r] = Real(value); };
}
template <class Term, class Put> static void fold_sum(const Layout& at, Term term, Put put) {
    fold(
        at, 0.0, term, [](double a, double b) { return a + b; }, put);
}

// x̄ (+)= f(place in x, place in y).
template <class F> static void unfold(const Layout& at, Target x_bar, F f) {
    Real* to = x_bar.array.data();
    const std::size_t n = at.n, inner = at.inner;
    const auto fill = [&](auto put) {
        if (inner == 1)
            for (std::size_t o = 0; o < at.outer; ++o)
                for (std::size_t j = 0; j < n; ++j) put(to[o * n + j], f(o * n + j, o));
        else
            for (std::size_t o = 0; o < at.outer; ++o)
                for (std::size_t j = 0; j < n; ++j)
                    for (std::size_t i = 0, x = (o * n + j) * inner; i < inner; ++i)
                        put(to[x + i], f(x + i, o * inner + i));
    };
    if (x_bar.add)
        fill([](Real& x, Real share) { x += share; });
    else
        fill([](Real& x, Real share) { x = share; });
}

Array sum_along(const Array& x, const Layout& at, const Shape& shape, double factor) {
    Array y = Array::from_shape(shape);
    fold_sum(at, elements(x), [&](std::size_t r, double sum) { y.data()[r] = Real(sum * factor); });
    return y;
}

void repeat_along(const Array& y_bar, const Layout& at, double factor, Target x_bar) {
    unfold(at, x_bar, [g = y_bar.data(), factor](std::size_t, std::size_t r) { return Real(g[r] * factor); });
}

Array prod_along(const Array& x, const Layout& at, const Shape& shape) {
    Array y = Array::from_shape(shape);
    fold(
        at, 1.0, elements(x), [](double a, double b) { return a * b; }, into(y));
    return y;
}

void prod_pullback(const Array& x, const Array& y_bar, const Layout& at, Target x_bar) {
    Vector<double> before(at.n);  // of element j: the product of those in front of it
    for (std::size_t r = 0; r < y_bar.size(); ++r) {
        const std::size_t start = r / at.inner * at.n * at.inner + r % at.inner;
        double product = 1;
        for (std::size_t j = 0; j < at.n; ++j) {
            before[j] = product;
            product *= x.data()[start + j * at.inner];
        }
        double after = y_bar.data()[r];
        for (std::size_t j = at.n; j-- > 0;) {
            const std::size_t k = start + j * at.inner;
            const Real share = y_bar.data()[r] == 0 ? 0 : Real(before[j] * after);
            x_bar.array.data()[k] = x_bar.add ? x_bar.array.data()[k] + share : share;
            after *= x.data()[k];
        }
    }
}

// `beats` is > or <. NaN beats all.
template <class Beats>
static Array best_along(const Array& x, const Layout& at, const Shape& shape, Real worst, Beats beats) {
    Array y = Array::from_shape(shape);
    const auto better = [=](Real best, Real v) {
        const Real number = beats(v, best) ? v : best;
        return v != v ? v : number;
    };
    fold(at, worst, elements(x), better, into(y));
    return y;
}
Array max_along(const Array& x, const Layout& at, const Shape& shape) {
    return best_along(x, at, shape, -std::numeric_limits<Real>::infinity(), std::greater());
}
Array min_along(const Array& x, const Layout& at, const Shape& shape) {
    return best_along(x, at, shape, std::numeric_limits<Real>::infinity(), std::less());
}

void winners_pullback(const Array& x, const Array& y, const Array& y_bar, const Layout& at, Target x_bar) {
    const auto wins = [p = x.data(), q = y.data()](std::size_t k, std::size_t r) {
        return p[k] == q[r] || (p[k] != p[k] && q[r] != q[r]);
    };
    Array share = Array::from_shape(y.shape());
    fold_sum(at, wins, [&](std::size_t r, double winners) { share.data()[r] = Real(y_bar.data()[r] / winners); });
    unfold(at, x_bar, [&](std::size_t k, std::size_t r) { return wins(k, r) ? share.data()[r] : 0; });
}

// e^(x − top), and 1 where both are the same infinity.
static Array shifted_exp(const Array& x, const Array& top, const Layout& at) {
    Array e = Array::from_shape(x.shape());
    unfold(at, {e, false},
           [p = x.data(), q = top.data()](std::size_t k, std::size_t r) { return p[k] == q[r] ? 0 : p[k] - q[r]; });
    xt::noalias(e) = xt::exp(e);
    return e;
}

Array logsumexp_along(const Array& x, const Layout& at, const Shape& shape) {
    Array y = max_along(x, at, shape);
    const Array e = shifted_exp(x, y, at);
    fold_sum(at, elements(e), [&](std::size_t r, double sum) { y.data()[r] += Real(std::log(sum)); });
    return y;
}

void logsumexp_pullback(const Array& x, const Array& y, const Array& y_bar, const Layout& at, Target x_bar) {
    const Array e = shifted_exp(x, y, at);  // sums to 1, or to the number of infinities
    Array share = Array::from_shape(y.shape());
    fold_sum(at, elements(e), [&](std::size_t r, double sum) {
        const bool none = y_bar.data()[r] == 0 || y.data()[r] == -std::numeric_limits<Real>::infinity();
        share.data()[r] = none ? 0 : Real(y_bar.data()[r] / sum);
    });
    unfold(at, x_bar,
           [p = e.data(), q = share.data()](std::size_t k, std::size_t r) { return q[r] == 0 ? 0 : q[r] * p[k]; });
}

Array norm_along(const Array& x, const Layout& at, const Shape& shape) {
    Array y = Array::from_shape(shape);
    const Real* p = x.data();
    fold(
        at, Real(0), [p](std::size_t k, std::size_t) { return std::abs(p[k]); },
        [](Real best, Real v) { return v > best ? v : best; }, into(y));
    // Squares overflow above 1e154 and vanish below 1e-162: so the largest is brought near 1, exactly, by a power of 2.
    Vector<double> scale(y.size());
    for (std::size_t r = 0; r < scale.size(); ++r) {
        const double largest = y.data()[r];
        scale[r] = largest > 0 && std::isfinite(largest) ? std::exp2(std::clamp(-std::ilogb(largest), -1000, 1000)) : 1;
    }
    const auto square = [p, q = scale.data()](std::size_t k, std::size_t r) {
        const double v = double(p[k]) * q[r];
        return v * v;
    };
    fold_sum(at, square, [&](std::size_t r, double sum) { y.data()[r] = Real(std::sqrt(sum) / scale[r]); });
    return y;
}

void norm_pullback(const Array& x, const Array& y, const Array& y_bar, const Layout& at, Target x_bar) {
    unfold(at, x_bar, [&](std::size_t k, std::size_t r) {
        const Real g = y_bar.data()[r], length = y.data()[r];
        return g == 0 || length == 0 ? 0 : g * (x.data()[k] / length);
    });
}

static Vector<double> means(const Array& x, const Layout& at) {
    Vector<double> mean(at.outer * at.inner);
    fold_sum(at, elements(x), [&](std::size_t r, double sum) { mean[r] = sum / double(at.n); });
    return mean;
}

Array variance_along(const Array& x, const Layout& at, const Shape& shape, double divisor) {
    Array y = Array::from_shape(shape);
    const Vector<double> mean = means(x, at);
    fold_sum(
        at, [&](std::size_t k, std::size_t r) { return (x.data()[k] - mean[r]) * (x.data()[k] - mean[r]); },
        [&](std::size_t r, double sum) { y.data()[r] = Real(sum / divisor); });
    return y;
}

void variance_pullback(const Array& x, const Array& y_bar, const Layout& at, double divisor, Target x_bar) {
    const Vector<double> mean = means(x, at);
    unfold(at, x_bar, [&](std::size_t k, std::size_t r) {
        const double g = y_bar.data()[r];
        return g == 0 ? 0 : Real(2 * g / divisor * (x.data()[k] - mean[r]));
    });
}

std::vector<std::int64_t> argmax_along(const Array& x, const Layout& at) {
    std::vector<std::int64_t> places(at.outer * at.inner);
    for (std::size_t r = 0; r < places.size(); ++r) {
        const Real* column = x.data() + r / at.inner * at.n * at.inner + r % at.inner;
        std::size_t best = 0;
        for (std::size_t j = 1; j < at.n; ++j) {
            const Real v = column[j * at.inner], top = column[best * at.inner];
            if (v > top || (v != v && top == top)) best = j;
        }
        places[r] = std::int64_t(best);
    }
    return places;
}

// ---- movement and gather

// One axis of a walk through two arrays: n steps, each of so many elements in either.
struct Stride {
    std::ptrdiff_t n, from, to;
};

// y (+)= x for rows × columns blocks of adjacent elements.
static void move_blocks(Stride rows, Stride columns, std::size_t length, const Real* x, Real* y, bool add) {
    if (columns.n == 1) std::swap(rows, columns);  // the longer loop inside
    for (std::ptrdiff_t r = 0; r < rows.n; ++r) {
        for (std::ptrdiff_t c = 0; c < columns.n; ++c) {
            const Real* from = x + r * rows.from + c * columns.from;
            Real* to = y + r * rows.to + c * columns.to;
            if (add)
                for (std::size_t i = 0; i < length; ++i) to[i] += from[i];
            else if (length == 1)
                *to = *from;
            else
                std::memcpy(to, from, length * sizeof(Real));
        }
    }
}

// The blocks of a part, the whole being where they come `from`.
struct PartBlocks {
    Stride rows, columns;
    std::size_t length, start;
    explicit PartBlocks(const Part& p) {
        const auto n = std::ptrdiff_t(p.whole.n), inner = std::ptrdiff_t(p.whole.inner),
                   count = std::ptrdiff_t(p.count);
        const bool adjacent = p.step == 1;  // then all of a row is one block
        rows = {std::ptrdiff_t(p.whole.outer), n * inner, count * inner};
        columns = {adjacent ? 1 : count, p.step * inner, inner};
        length = p.whole.inner * (adjacent ? p.count : 1);
        start = p.start * p.whole.inner;
    }
};
static Stride reversed(Stride s) { return {s.n, s.to, s.from}; }

void read_part(const Array& whole, const Part& part, Target to) {
    if (to.array.size() == 0) return;
    const PartBlocks b(part);
    move_blocks(b.rows, b.columns, b.length, whole.data() + b.start, to.array.data(), to.add);
}

void write_part(const Array& from, const Part& part, Target whole) {
    if (from.size() == 0) return;
    const PartBlocks b(part);
    move_blocks(reversed(b.rows), reversed(b.columns), b.length, from.data(), whole.array.data() + b.start, whole.add);
}

// Calls f(place in x, place in y) for every step through the axes.
template <class F> static void walk(std::span<const Stride> axes, std::ptrdiff_t x, std::ptrdiff_t y, const F& f) {
    if (axes.empty()) return f(x, y);
    for (std::ptrdiff_t i = 0; i < axes[0].n; ++i) walk(axes.subspan(1), x + i * axes[0].from, y + i * axes[0].to, f);
}

// y[c, r] (+)= x[r, c], where rows are contiguous in y and columns in x, by squares: of either side whole cache lines
// are used while they are there.
static void transpose_plane(Stride rows, Stride columns, const Real* x, Real* y, bool add) {
    constexpr std::ptrdiff_t side = 8;
    for (std::ptrdiff_t r = 0; r < rows.n; r += side) {
        const std::ptrdiff_t r_stop = std::min(r + side, rows.n);
        for (std::ptrdiff_t c = 0; c < columns.n; c += side) {
            const std::ptrdiff_t c_stop = std::min(c + side, columns.n);
            for (std::ptrdiff_t j = c; j < c_stop; ++j) {
                const Real* from = x + j;
                Real* to = y + j * columns.to;
                if (add)
                    for (std::ptrdiff_t i = r; i < r_stop; ++i) to[i] += from[i * rows.from];
                else
                    for (std::ptrdiff_t i = r; i < r_stop; ++i) to[i] = from[i * rows.from];
            }
        }
    }
}

void permute(const Array& x, const AxisOrder& order, Target y) {
    const Shape& shape = x.shape();
    if (x.size() == 0) return;
    std::ptrdiff_t x_strides[max_axes], size = 1;
    for (std::size_t k = shape.size(); k-- > 0; size *= std::ptrdiff_t(shape[k])) x_strides[k] = size;

    SmallVector<Stride, max_axes> axes;  // of y, from the first; neighbours that stay neighbours are one
    for (std::size_t k = 0; k < shape.size(); ++k) {
        const auto n = std::ptrdiff_t(shape[order[k]]), from = x_strides[order[k]];
        if (n == 1) continue;
        if (!axes.empty() && axes.back().from == n * from)
            axes.back() = {axes.back().n * n, from, 0};
        else
            axes.push_back({n, from, 0});
    }
    size = 1;
    for (std::size_t k = axes.size(); k-- > 0; size *= axes[k].n) axes[k].to = size;

    // A plane of two axes is moved at once: y's last, and the one that is contiguous in x, or the one before the last.
    const auto take = [&](std::size_t k) {
        if (k >= axes.size()) return Stride{1, 1, 1};
        const Stride axis = axes[k];
        axes.erase_at(k);
        return axis;
    };
    const Stride last = take(axes.size() - 1);
    std::size_t other = axes.size() - 1;
    if (last.from != 1)
        while (axes[other].from != 1) --other;
    const Stride next = take(other);
    walk(std::span<const Stride>(axes.begin(), axes.size()), 0, 0, [&](std::ptrdiff_t from, std::ptrdiff_t to) {
        if (last.from == 1)
            move_blocks({1, 0, 0}, next, std::size_t(last.n), x.data() + from, y.array.data() + to, y.add);
        else
            transpose_plane(last, next, x.data() + from, y.array.data() + to, y.add);
    });
}

void gather_rows(const Array& table, const Indices& ids, Array& y) {
    const std::size_t n = table.shape()[1];
    Real* to = y.data();
    for (std::int64_t id : ids.values()) {
        std::copy_n(table.data() + std::size_t(id) * n, n, to);
        to += n;
    }
}

void scatter_add_rows(const Array& y_bar, const Indices& ids, Array& table) {
    const std::size_t n = table.shape()[1];
    const Real* from = y_bar.data();
    for (std::int64_t id : ids.values()) {
        Real* row = table.data() + std::size_t(id) * n;
        for (std::size_t j = 0; j < n; ++j) row[j] += from[j];
        from += n;
    }
}

// Calls f(place in x, place in ids) for every index.
template <class F> static void for_each_gathered(const Shape& x, std::size_t axis, const Indices& ids, const F& f) {
    const Shape& shape = ids.shape();
    SmallVector<Stride, max_axes> axes(shape.size());
    std::ptrdiff_t x_size = 1, size = 1, stride = 1;
    for (std::size_t k = shape.size(); k-- > 0;) {
        const auto n = std::ptrdiff_t(shape[k]);
        axes[k] = {n, k == axis ? 0 : x_size, size};
        if (k == axis) stride = x_size;
        x_size *= std::ptrdiff_t(x[k]);
        size *= n;
    }
    const Stride last = axes.back();
    const std::int64_t* index = ids.values().data();
    walk(std::span<const Stride>(axes.begin(), axes.size() - 1), 0, 0, [&](std::ptrdiff_t from, std::ptrdiff_t at) {
        for (std::ptrdiff_t j = 0; j < last.n; ++j) f(from + j * last.from + index[at + j] * stride, at + j);
    });
}

void gather(const Array& x, std::size_t axis, const Indices& ids, Array& y) {
    for_each_gathered(x.shape(), axis, ids,
                      [&](std::ptrdiff_t from, std::ptrdiff_t at) { y.data()[at] = x.data()[from]; });
}

void scatter_add(const Array& y_bar, std::size_t axis, const Indices& ids, Array& x) {
    for_each_gathered(x.shape(), axis, ids,
                      [&](std::ptrdiff_t to, std::ptrdiff_t at) { x.data()[to] += y_bar.data()[at]; });
}

// ---- recurrent and regularise

// Exponentials and tanh run over whole arrays, all else in one loop: an xtensor statement for each row and gate takes
// as long again as its 128 numbers do.
static void sigmoid(Array& x) { xt::noalias(x) = 1 / (1 + xt::exp(-x)); }

void lstm_gates(Array& gates, const Array& c, Array& h_new, Array& c_new) {
    const std::size_t B = c.shape(0), H = c.shape(1);
    for (std::size_t b = 0; b < B; ++b) std::copy_n(gates.data() + (4 * b + 2) * H, H, c_new.data() + b * H);
    xt::noalias(c_new) = xt::tanh(c_new);
    sigmoid(gates);  // that of g is not used
    for (std::size_t b = 0; b < B; ++b) {
        Real* __restrict i = gates.data() + b * 4 * H, *f = i + H, *g = f + H;
        const Real* __restrict c_old = c.data() + b * H;
        Real* __restrict c_row = c_new.data() + b * H;
        for (std::size_t k = 0; k < H; ++k) {
            g[k] = c_row[k];
            c_row[k] = f[k] * c_old[k] + i[k] * g[k];
        }
    }
    xt::noalias(h_new) = xt::tanh(c_new);
    for (std::size_t b = 0; b < B; ++b) {
        const Real* __restrict o = gates.data() + (4 * b + 3) * H;
        Real* __restrict h = h_new.data() + b * H;
        for (std::size_t k = 0; k < H; ++k) h[k] *= o[k];
    }
}

void lstm_gates_pullback(const Array& gates, const Array& c, const Array& c_new, const Array& h_bar, Array& c_bar,
                         Array& s_bar) {
    const std::size_t B = c.shape(0), H = c.shape(1);
    const Array tanh_c = xt::tanh(c_new);
    for (std::size_t b = 0; b < B; ++b) {
        const Real* __restrict i = gates.data() + b * 4 * H, *f = i + H, *g = f + H, *o = g + H;
        const Real* __restrict c_old = c.data() + b * H, * __restrict t = tanh_c.data() + b * H;
        const Real* __restrict h = h_bar.data() + b * H;
        Real* __restrict d = c_bar.data() + b * H, * __restrict s = s_bar.data() + b * 4 * H;
        for (std::size_t k = 0; k < H; ++k) {
            s[3 * H + k] = chain(h[k], t[k] * o[k] * (1 - o[k]));  // h' = o ⊙ tanh(c')
            const Real cell = d[k] + chain(h[k], o[k] * (1 - t[k] * t[k]));
            s[k] = chain(cell, g[k] * i[k] * (1 - i[k]));  // c' = f ⊙ c + i ⊙ g
            s[H + k] = chain(cell, c_old[k] * f[k] * (1 - f[k]));
            s[2 * H + k] = chain(cell, i[k] * (1 - g[k] * g[k]));
            d[k] = chain(cell, f[k]);
        }
    }
}

void gru_gates(Array& gates, const Array& product, const Array& b_n, const Array& h, Array& q, Array& h_new) {
    const std::size_t B = h.shape(0), H = h.shape(1);
    for (std::size_t b = 0; b < B; ++b) {
        Real* __restrict a = gates.data() + b * 3 * H;
        const Real* __restrict m = product.data() + b * 3 * H, * __restrict bias = b_n.data();
        Real* __restrict q_row = q.data() + b * H, * __restrict n = h_new.data() + b * H;
        for (std::size_t k = 0; k < 2 * H; ++k) a[k] += m[k];
        for (std::size_t k = 0; k < H; ++k) {
            q_row[k] = m[2 * H + k] + bias[k];
            n[k] = a[2 * H + k];
        }
    }
    sigmoid(gates);  // that of n is not used
    for (std::size_t b = 0; b < B; ++b) {
        const Real* __restrict r = gates.data() + b * 3 * H, * __restrict q_row = q.data() + b * H;
        Real* __restrict n = h_new.data() + b * H;
        for (std::size_t k = 0; k < H; ++k) n[k] += r[k] * q_row[k];
    }
    xt::noalias(h_new) = xt::tanh(h_new);
    for (std::size_t b = 0; b < B; ++b) {
        Real* __restrict z = gates.data() + (3 * b + 1) * H, *n = z + H, * __restrict h_row = h_new.data() + b * H;
        const Real* __restrict h_old = h.data() + b * H;
        for (std::size_t k = 0; k < H; ++k) {
            n[k] = h_row[k];
            h_row[k] = (1 - z[k]) * n[k] + z[k] * h_old[k];  // z = 1 gives h, bit for bit
        }
    }
}

void gru_gates_pullback(const Array& gates, const Array& q, const Array& h, Array& h_bar, Array& a_bar,
                        Array& product_bar, Array& q_bar) {
    const std::size_t B = h.shape(0), H = h.shape(1);
    for (std::size_t b = 0; b < B; ++b) {
        const Real* __restrict r = gates.data() + b * 3 * H, *z = r + H, *n = z + H;
        const Real* __restrict q_row = q.data() + b * H, * __restrict h_row = h.data() + b * H;
        Real* __restrict s = a_bar.data() + b * 3 * H, * __restrict m = product_bar.data() + b * 3 * H;
        Real* __restrict g = h_bar.data() + b * H, * __restrict q_bar_row = q_bar.data() + b * H;
        for (std::size_t k = 0; k < H; ++k) {
            const Real a_n_bar = chain(g[k], (1 - z[k]) * (1 - n[k] * n[k]));  // h' = (1 − z) ⊙ n + z ⊙ h
            m[k] = s[k] = chain(a_n_bar, q_row[k] * r[k] * (1 - r[k]));        // n = tanh(a_n + r ⊙ q)
            m[H + k] = s[H + k] = chain(g[k], (h_row[k] - n[k]) * z[k] * (1 - z[k]));
            s[2 * H + k] = a_n_bar;
            m[2 * H + k] = q_bar_row[k] = chain(a_n_bar, r[k]);
            g[k] = chain(g[k], z[k]);
        }
    }
}

void layer_norm_rows(const Array& x, const Array& gain, const Array& bias, Real eps, Array& y, Array& statistics) {
    const std::size_t n = gain.size(), rows = x.size() / n;
    for (std::size_t r = 0; r < rows; ++r) {
        const Real* p = x.data() + r * n;
        double scale = 1, mean = 0, deviation = 0;  // of scale · row, scale being a power of two
        const auto measure = [&](double power) {
            scale = power;
            mean = sum_of(n, [=](std::size_t j) { return power * double(p[j]); }) / double(n);
            const auto square = [=](std::size_t j) { return (power * p[j] - mean) * (power * p[j] - mean); };
            deviation = std::sqrt(sum_of(n, square) / double(n) + power * power * double(eps));
        };
        measure(1);
        if (!std::isfinite(deviation)) measure(0x1p-600);  // squares overflow from 1e154 on
        if (deviation < 1e-140) measure(0x1p500);          // and vanish below 1e-154
        if (deviation == 0) measure(1);                    // no spread at all
        const double inverse = deviation == 0 ? 0 : 1 / deviation;
        for (std::size_t j = 0; j < n; ++j)
            y.data()[r * n + j] = Real((scale * double(p[j]) - mean) * inverse) * gain.data()[j] + bias.data()[j];
        Real* kept = statistics.data() + 4 * r;
        kept[0] = Real(mean);  // a mean in float would lose what differs from it by little
        kept[1] = Real(mean - double(kept[0]));
        kept[2] = Real(inverse);
        kept[3] = Real(scale);
    }
}

void layer_norm_rows_pullback(const Array& x, const Array& gain, const Array& statistics, const Array& y_bar,
                              Array* x_bar, Array& gain_bar, Array& bias_bar) {
    const std::size_t n = gain.size(), rows = x.size() / n;
    Vector<double> gain_sum(n, 0), bias_sum(n, 0), x_hat(n), g(n);
    for (std::size_t r = 0; r < rows; ++r) {
        const Real* kept = statistics.data() + 4 * r;
        const double mean = double(kept[0]) + double(kept[1]), inverse = kept[2], scale = kept[3];
        const Real *p = x.data() + r * n, *q = y_bar.data() + r * n;
        if (std::all_of(q, q + n, [](Real v) { return v == 0; })) {
            if (x_bar) std::fill_n(x_bar->data() + r * n, n, Real(0));
            continue;
        }
        for (std::size_t j = 0; j < n; ++j) {
            x_hat[j] = (scale * double(p[j]) - mean) * inverse;
            g[j] = double(q[j]) * double(gain.data()[j]);
            gain_sum[j] += double(q[j]) * x_hat[j];
            bias_sum[j] += double(q[j]);
        }
        if (!x_bar) continue;
        const double mean_g = sum_of(n, [&](std::size_t j) { return g[j]; }) / double(n);
        const double mean_gx = sum_of(n, [&](std::size_t j) { return g[j] * x_hat[j]; }) / double(n);
        for (std::size_t j = 0; j < n; ++j)
            x_bar->data()[r * n + j] = Real((g[j] - mean_g - x_hat[j] * mean_gx) * inverse * scale);
    }
    std::copy(gain_sum.begin(), gain_sum.end(), gain_bar.data());
    std::copy(bias_sum.begin(), bias_sum.end(), bias_bar.data());
}

// ---- softmax and cross-entropy

namespace {
constexpr Real infinity = std::numeric_limits<Real>::infinity();

// exp of a row in whole vectors. xtensor would compute what comes before an aligned address and after the last whole
// vector one by one, each 10 times slower: so the row is shifted into an aligned, padded place.
class Exponentials {
public:
    explicit Exponentials(std::size_t most) : e_(whole(most)) {}
    // e^(x − shift), valid until the next call
    const Real* operator()(const Real* x, std::size_t n, Real shift) {
        for (std::size_t j = 0; j < n; ++j) e_[j] = x[j] - shift;
        std::fill(e_.data() + n, e_.data() + whole(n), Real(0));
        auto e = xt::adapt(e_.data(), whole(n), xt::no_ownership(), Shape{whole(n)});
        xt::noalias(e) = xt::exp(e);
        return e_.data();
    }

private:
    static std::size_t whole(std::size_t n) {
        constexpr std::size_t width = xt_simd::simd_traits<Real>::size;  // 1 without xsimd
        return (n + width - 1) / width * width;
    }
    Vector<Real> e_;
};

Real largest(const Real* x, std::size_t n) {  // passes over NaN, which the exponentials then spread to the whole row
    return lanes(
        n, -infinity, [x](std::size_t j) { return x[j]; }, [](Real a, Real b) { return a > b ? a : b; });
}
bool all_zero(const Real* x, std::size_t n) {
    return std::all_of(x, x + n, [](Real v) { return v == 0; });
}
double total(const Real* x, std::size_t n) {
    return sum_of(n, [x](std::size_t j) { return x[j]; });
}

// Calls f(number of the row, its x, its y) for each row along the axis. Rows that are not contiguous are copied out and
// back, as many at once as share a cache line. `reads_y`: y holds something that f reads.
template <class F> void along(const Layout& l, const Real* x, Real* y, bool reads_y, F f) {
    if (l.n == 0) return;
    if (l.inner == 1) {
        for (std::size_t o = 0; o < l.outer; ++o) f(o, x + o * l.n, y + o * l.n);
        return;
    }
    constexpr std::size_t most = 64 / sizeof(Real);
    Vector<Real> x_rows(most * l.n), y_rows(most * l.n);
    for (std::size_t o = 0; o < l.outer; ++o)
        for (std::size_t first = 0; first < l.inner; first += most) {
            const std::size_t rows = std::min(most, l.inner - first), at = o * l.n * l.inner + first;
            for (std::size_t j = 0; j < l.n; ++j)
                for (std::size_t i = 0; i < rows; ++i) {
                    x_rows[i * l.n + j] = x[at + j * l.inner + i];
                    if (reads_y) y_rows[i * l.n + j] = y[at + j * l.inner + i];
                }
            for (std::size_t i = 0; i < rows; ++i)
                f(o * l.inner + first + i, x_rows.data() + i * l.n, y_rows.data() + i * l.n);
            for (std::size_t j = 0; j < l.n; ++j)
                for (std::size_t i = 0; i < rows; ++i) y[at + j * l.inner + i] = y_rows[i * l.n + j];
        }
}

// y = softmax(x) · weight of one row.
void softmax_row(const Real* x, std::size_t n, Real* y, Exponentials& exponentials, double weight = 1) {
    const Real* e = exponentials(x, n, largest(x, n));
    const Real factor = Real(weight / total(e, n));
    for (std::size_t j = 0; j < n; ++j) y[j] = e[j] * factor;
}

// Where the mask of each row begins, broadcast by strides. Only along another axis than the last is it copied.
class MaskRows {
public:
    MaskRows(const Mask& visible, const Shape& shape, std::size_t axis) {
        const Layout l = around(shape, axis);
        if (axis + 1 < shape.size()) {
            const Mask whole = visible.broadcast_to(shape);
            turned_ = std::make_unique<bool[]>(whole.size());
            for (std::size_t o = 0; o < l.outer; ++o)
                for (std::size_t j = 0; j < l.n; ++j)
                    for (std::size_t i = 0; i < l.inner; ++i)
                        turned_[(o * l.inner + i) * l.n + j] = whole[(o * l.n + j) * l.inner + i];
            for (std::size_t r = 0; r < l.outer * l.inner; ++r) rows_.push_back(turned_.get() + r * l.n);
            return;
        }
        for_each_broadcast_row(shape, visible.shape(), [&](std::size_t, std::size_t at, bool repeated) {
            rows_.push_back(repeated ? uniform(visible[at], l.n) : visible.data() + at);
        });
    }
    const bool* operator[](std::size_t row) const { return rows_[row]; }

private:
    const bool* uniform(bool value, std::size_t n) {
        std::unique_ptr<bool[]>& row = uniform_[value];
        if (!row) {
            row = std::make_unique<bool[]>(n);
            std::fill_n(row.get(), n, value);
        }
        return row.get();
    }
    Vector<const bool*> rows_;
    std::unique_ptr<bool[]> turned_, uniform_[2];
};

const bool* find(const bool* first, const bool* last, bool value) {
    const void* found = std::memchr(first, value, std::size_t(last - first));
    return found ? static_cast<const bool*>(found) : last;
}

// Only what lies between the first and the last visible entry is exponentiated: under a causal mask, half.
void masked_softmax_row(const Real* x, const bool* visible, std::size_t n, Real* y, Exponentials& exponentials) {
    const bool *last = visible + n, *begin = find(visible, last, true), *end = find(begin, last, false);
    const bool holes = find(end, last, true) != last;
    if (holes)
        for (end = last; !end[-1];) --end;
    std::fill(y, y + n, Real(0));
    const std::size_t first = std::size_t(begin - visible), count = std::size_t(end - begin);
    if (count == 0) return;
    if (!holes) return softmax_row(x + first, count, y + first, exponentials);
    for (std::size_t j = first; j < first + count; ++j) y[j] = visible[j] ? x[j] : -infinity;
    softmax_row(y + first, count, y + first, exponentials);
    for (std::size_t j = first; j < first + count; ++j)
        if (!visible[j]) y[j] = 0;  // even beside a NaN
}

// ȳ in g becomes x̄. What is hidden is where y is 0.
void masked_softmax_row_pullback(const Real* y, std::size_t n, Real* g) {
    const Real mean = Real(sum_of(n, [=](std::size_t j) { return y[j] == 0 ? 0 : y[j] * g[j]; }));
    if (std::isnan(mean) && all_zero(g, n)) return;
    for (std::size_t j = 0; j < n; ++j) g[j] = y[j] == 0 ? 0 : y[j] * (g[j] - mean);
}
}  // namespace

Array softmax_along(const Array& x, std::size_t axis) {
    const Layout l = around(x.shape(), axis);
    Array y = Array::from_shape(x.shape());
    Exponentials exponentials(l.n);
    along(l, x.data(), y.data(), false,
          [&](std::size_t, const Real* from, Real* to) { softmax_row(from, l.n, to, exponentials); });
    return y;
}

Array masked_softmax_along(const Array& x, const Mask& visible, std::size_t axis) {
    const Layout l = around(x.shape(), axis);
    const MaskRows mask(visible, x.shape(), axis);
    Array y = Array::from_shape(x.shape());
    Exponentials exponentials(l.n);
    along(l, x.data(), y.data(), false, [&](std::size_t row, const Real* from, Real* to) {
        masked_softmax_row(from, mask[row], l.n, to, exponentials);
    });
    return y;
}

Array log_softmax_along(const Array& x, std::size_t axis) {
    const Layout l = around(x.shape(), axis);
    Array y = Array::from_shape(x.shape());
    Exponentials exponentials(l.n);
    along(l, x.data(), y.data(), false, [&](std::size_t, const Real* from, Real* to) {
        const Real top = largest(from, l.n), log_sum = Real(std::log(total(exponentials(from, l.n, top), l.n)));
        for (std::size_t j = 0; j < l.n; ++j) to[j] = (from[j] - top) - log_sum;
    });
    return y;
}

Array softmax_pullback(const Array& y, Array bar, std::size_t axis) {
    const Layout l = around(y.shape(), axis);
    along(l, y.data(), bar.data(), true, [&](std::size_t, const Real* p, Real* g) {
        const Real mean = Real(sum_of(l.n, [=](std::size_t j) { return p[j] * g[j]; }));
        for (std::size_t j = 0; j < l.n; ++j) g[j] = p[j] * (g[j] - mean);
    });
    return bar;
}

Array masked_softmax_pullback(const Array& y, Array bar, std::size_t axis) {
    const Layout l = around(y.shape(), axis);
    along(l, y.data(), bar.data(), true,
          [&](std::size_t, const Real* p, Real* g) { masked_softmax_row_pullback(p, l.n, g); });
    return bar;
}

Array log_softmax_pullback(const Array& y, Array bar, std::size_t axis) {
    const Layout l = around(y.shape(), axis);
    Exponentials exponentials(l.n);
    along(l, y.data(), bar.data(), true, [&](std::size_t, const Real* log_p, Real* g) {
        const Real* p = exponentials(log_p, l.n, 0);
        const Real sum = Real(total(g, l.n));
        if (sum == 0 && all_zero(g, l.n)) return;
        for (std::size_t j = 0; j < l.n; ++j) g[j] -= p[j] * sum;
    });
    return bar;
}

Vector<double> cross_entropy_rows(const Array& x, const Indices& targets, std::int64_t ignored, double smoothing) {
    const std::size_t n = x.shape().back();
    Vector<double> losses(targets.size(), 0.0);
    Exponentials exponentials(n);
    for (std::size_t r = 0; r < losses.size(); ++r) {
        if (targets[r] == ignored) continue;
        const Real *row = x.data() + r * n, top = largest(row, n);
        const double log_sum = std::log(total(exponentials(row, n, top), n));
        losses[r] = log_sum - (double(row[targets[r]]) - top);
        if (smoothing == 0) continue;       // else 0 · ∞ at a logit of −∞
        if (smoothing == 1) losses[r] = 0;  // likewise
        const double mean = sum_of(n, [=](std::size_t j) { return row[j] - top; }) / double(n);
        losses[r] = (1 - smoothing) * losses[r] + smoothing * (log_sum - mean);
    }
    return losses;
}

Array cross_entropy_pullback(const Array& x, const Indices& targets, std::int64_t ignored, double smoothing,
                             const Vector<double>& weights) {
    const std::size_t n = x.shape().back();
    Array x_bar = Array::from_shape(x.shape());
    Exponentials exponentials(n);
    for (std::size_t r = 0; r < weights.size(); ++r) {
        Real* row = x_bar.data() + r * n;
        if (targets[r] == ignored || weights[r] == 0) {
            std::fill(row, row + n, Real(0));
            continue;
        }
        softmax_row(x.data() + r * n, n, row, exponentials, weights[r]);
        if (smoothing != 0)
            for (std::size_t j = 0; j < n; ++j) row[j] -= Real(weights[r] * smoothing / double(n));
        row[targets[r]] -= Real(weights[r] * (1 - smoothing));
    }
    return x_bar;
}

// ---- attention

void pair_sums(const Array& q, const Array& k, Array& y) {
    const Shape& shape = y.shape();  // (…,T_q,T_k,A)
    const std::size_t A = shape.back(), T_k = shape[shape.size() - 2], T_q = shape[shape.size() - 3];
    Real* to = y.data();
    for (std::size_t row = 0; to < y.data() + y.size(); ++row) {
        const Real *a = q.data() + row * A, *b = k.data() + row / T_q * T_k * A;
        for (std::size_t j = 0; j < T_k; ++j, b += A)
            for (std::size_t i = 0; i < A; ++i) *to++ = a[i] + b[i];
    }
}

void additive_scores_pullback(const Array& y, const Array& v, const Array& s_bar, Array* q_bar, Array* k_bar,
                              Array* v_bar) {
    const Shape& shape = y.shape();
    const std::size_t A = shape.back(), T_k = shape[shape.size() - 2], T_q = shape[shape.size() - 3];
    Vector<double> q_sum(A), v_sum(A, 0.0);
    Vector<Real> unread(k_bar ? 0 : A);  // where the keys' shares go if nobody wants them
    for (std::size_t row = 0; row * T_k < s_bar.size(); ++row) {
        std::fill(q_sum.begin(), q_sum.end(), 0.0);
        for (std::size_t j = 0; j < T_k; ++j) {
            const Real g = s_bar.data()[row * T_k + j];
            if (g == 0) continue;
            const Real* __restrict t = y.data() + (row * T_k + j) * A, * __restrict weight = v.data();
            Real* __restrict k_row = k_bar ? k_bar->data() + (row / T_q * T_k + j) * A : unread.data();
            double* __restrict to_q = q_sum.data(), * __restrict to_v = v_sum.data();
            for (std::size_t i = 0; i < A; ++i) {
                const Real share = g * weight[i] * (1 - t[i] * t[i]);
                to_v[i] += g * t[i];
                to_q[i] += share;
                k_row[i] += share;
            }
        }
        for (std::size_t i = 0; q_bar && i < A; ++i) q_bar->data()[row * A + i] += Real(q_sum[i]);
    }
    for (std::size_t i = 0; v_bar && i < A; ++i) v_bar->data()[i] += Real(v_sum[i]);
}

namespace {
struct QueryBlock {
    std::size_t head, first, rows;  // these queries of a head; `first` counts through all heads
    std::size_t keys;               // none of them sees any after so many
};

// Calls f(block, the mask's rows or null) for each block of queries.
template <class F> void for_each_block(const Shape& weights, const std::optional<Mask>& visible, F f) {
    constexpr std::size_t most = 32;  // rows: with 128 keys their scores take 16 KiB
    const Layout l = around(weights, weights.size() - 1);
    const std::size_t T_q = weights[weights.size() - 2], T_k = l.n;
    std::optional<MaskRows> mask;
    if (visible && T_k > 0) mask.emplace(*visible, weights, weights.size() - 1);
    for (std::size_t first = 0; first < l.outer;) {
        QueryBlock block{first / T_q, first, std::min(most, T_q - first % T_q), mask ? 0 : T_k};
        for (std::size_t r = 0; mask && r < block.rows; ++r) {
            const bool* row = (*mask)[first + r];
            std::size_t end = T_k;
            while (end > block.keys && !row[end - 1]) --end;
            block.keys = std::max(block.keys, end);
        }
        f(block, mask ? &*mask : nullptr);
        first += block.rows;
    }
}
}  // namespace

void attend(const Array& q, const Array& k, const Array& v, const std::optional<Mask>& visible, Array& context,
            Array& weights) {
    const std::size_t D = q.shape().back(), V = v.shape().back(), T_k = weights.shape().back();
    Vector<Real> scores;
    Exponentials exponentials(T_k);
    for_each_block(weights.shape(), visible, [&](const QueryBlock& block, const MaskRows* mask) {
        const auto [head, first, rows, keys] = block;
        scores.resize(rows * keys);
        gemm(rows, keys, D, q.data() + first * D, Op::plain, k.data() + head * T_k * D, Op::transposed, scores.data(),
             false);
        for (std::size_t r = 0; r < rows; ++r) {
            Real *row = scores.data() + r * keys, *to = weights.data() + (first + r) * T_k;
            if (keys && mask)
                masked_softmax_row(row, (*mask)[first + r], keys, to, exponentials);
            else if (keys)
                softmax_row(row, keys, to, exponentials);
            std::copy_n(to, keys, row);
            std::fill(to + keys, to + T_k, Real(0));
        }
        gemm(rows, V, keys, scores.data(), Op::plain, v.data() + head * T_k * V, Op::plain, context.data() + first * V,
             false);
    });
}

void attend_pullback(const Array& q, const Array& k, const Array& v, const std::optional<Mask>& visible,
                     const Array& weights, const Array& context_bar, const Array* weights_bar, Array* q_bar,
                     Array* k_bar, Array* v_bar) {
    const std::size_t D = q.shape().back(), V = v.shape().back(), T_k = weights.shape().back(),
                      T_q = weights.shape()[weights.dimension() - 2];
    if (T_q == 0)
        for (Array* bar : {k_bar, v_bar})
            if (bar) std::fill_n(bar->data(), bar->size(), Real(0));
    Vector<Real> p, s_bar;  // weights and cotangents of the scores
    for_each_block(weights.shape(), visible, [&](const QueryBlock& block, const MaskRows*) {
        const std::size_t head = block.head, first = block.first, rows = block.rows, keys = block.keys;
        p.resize(rows * keys), s_bar.resize(rows * keys);
        const Real* c_bar = context_bar.data() + first * V;
        gemm(rows, keys, V, c_bar, Op::plain, v.data() + head * T_k * V, Op::transposed, s_bar.data(), false);
        for (std::size_t r = 0; r < rows; ++r) {
            const Real* from = weights.data() + (first + r) * T_k;
            Real *row = p.data() + r * keys, *bar = s_bar.data() + r * keys;
            const Real* from_bar = weights_bar ? weights_bar->data() + (first + r) * T_k : nullptr;
            if (all_zero(c_bar + r * V, V) && (!from_bar || all_zero(from_bar, keys))) {  // whatever v and p hold
                std::fill_n(row, keys, Real(0));
                std::fill_n(bar, keys, Real(0));
                continue;
            }
            std::copy_n(from, keys, row);
            if (from_bar)
                for (std::size_t j = 0; j < keys; ++j) bar[j] += from_bar[j];
            masked_softmax_row_pullback(row, keys, bar);
        }
        const std::size_t K = head * T_k * D;
        if (q_bar)
            gemm(rows, D, keys, s_bar.data(), Op::plain, k.data() + K, Op::plain, q_bar->data() + first * D, false);
        // A head's first block of queries writes, the others add.
        const bool add = first % T_q != 0;
        const auto sum_over_queries = [&](const Real* weight, const Real* x, std::size_t n, Real* bar) {
            gemm(keys, n, rows, weight, Op::transposed, x, Op::plain, bar, add);
            if (!add) std::fill(bar + keys * n, bar + T_k * n, Real(0));
        };
        if (k_bar) sum_over_queries(s_bar.data(), q.data() + first * D, D, k_bar->data() + K);
        if (v_bar) sum_over_queries(p.data(), c_bar, V, v_bar->data() + head * T_k * V);
    });
}

}  // namespace lookback
