#include "kernels.hpp"
#include <cmath>
#include <cstring>
#include <span>
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

// n numbers of a row, to write expressions of: a view of memory, nothing lazy.
static auto row(Real* x, std::size_t n) { return xt::adapt(x, n, xt::no_ownership(), std::array{n}); }
static auto row(const Real* x, std::size_t n) { return xt::adapt(x, n, xt::no_ownership(), std::array{n}); }

void lstm_gates(Array& gates, const Array& c, Array& h_new, Array& c_new) {
    const std::size_t B = c.shape(0), H = c.shape(1);
    for (std::size_t b = 0; b < B; ++b) {
        Real* a = gates.data() + b * 4 * H;
        auto input_and_forget = row(a, 2 * H), i = row(a, H), f = row(a + H, H), g = row(a + 2 * H, H),
             o = row(a + 3 * H, H);
        auto c_row = row(c.data() + b * H, H);
        auto c_new_row = row(c_new.data() + b * H, H), h_new_row = row(h_new.data() + b * H, H);
        xt::noalias(input_and_forget) = 1 / (1 + xt::exp(-input_and_forget));
        xt::noalias(g) = xt::tanh(g);
        xt::noalias(o) = 1 / (1 + xt::exp(-o));
        xt::noalias(c_new_row) = f * c_row + i * g;
        xt::noalias(h_new_row) = o * xt::tanh(c_new_row);
    }
}

void lstm_gates_pullback(const Array& gates, const Array& c, const Array& c_new, const Array& h_bar, Array& c_bar,
                         Array& s_bar) {
    const std::size_t B = c.shape(0), H = c.shape(1);
    Array tanh_c(Shape{H});
    for (std::size_t b = 0; b < B; ++b) {
        const Real* a = gates.data() + b * 4 * H;
        Real* s = s_bar.data() + b * 4 * H;
        auto i = row(a, H), f = row(a + H, H), g = row(a + 2 * H, H), o = row(a + 3 * H, H);
        auto i_bar = row(s, H), f_bar = row(s + H, H), g_bar = row(s + 2 * H, H), o_bar = row(s + 3 * H, H);
        auto c_old = row(c.data() + b * H, H), c_row = row(c_new.data() + b * H, H), h = row(h_bar.data() + b * H, H);
        auto d = row(c_bar.data() + b * H, H);
        xt::noalias(tanh_c) = xt::tanh(c_row);
        xt::noalias(o_bar) = h * tanh_c * o * (1 - o);  // h' = o ⊙ tanh(c')
        xt::noalias(d) = d + h * o * (1 - tanh_c * tanh_c);
        xt::noalias(i_bar) = d * g * i * (1 - i);  // c' = f ⊙ c + i ⊙ g
        xt::noalias(f_bar) = d * c_old * f * (1 - f);
        xt::noalias(g_bar) = d * i * (1 - g * g);
        xt::noalias(d) = d * f;
    }
}

void gru_gates(Array& gates, const Array& product, const Array& b_n, const Array& h, Array& q, Array& h_new) {
    const std::size_t B = h.shape(0), H = h.shape(1);
    for (std::size_t b = 0; b < B; ++b) {
        Real* a = gates.data() + b * 3 * H;
        const Real* m = product.data() + b * 3 * H;
        auto reset_and_update = row(a, 2 * H), r = row(a, H), z = row(a + H, H), n = row(a + 2 * H, H);
        auto q_row = row(q.data() + b * H, H), h_new_row = row(h_new.data() + b * H, H);
        auto h_row = row(h.data() + b * H, H);
        xt::noalias(reset_and_update) = 1 / (1 + xt::exp(-(reset_and_update + row(m, 2 * H))));
        xt::noalias(q_row) = row(m + 2 * H, H) + b_n;
        xt::noalias(n) = xt::tanh(n + r * q_row);
        xt::noalias(h_new_row) = (1 - z) * n + z * h_row;  // z = 1 gives h, bit for bit
    }
}

void gru_gates_pullback(const Array& gates, const Array& q, const Array& h, Array& h_bar, Array& a_bar,
                        Array& product_bar, Array& q_bar) {
    const std::size_t B = h.shape(0), H = h.shape(1);
    for (std::size_t b = 0; b < B; ++b) {
        const Real* a = gates.data() + b * 3 * H;
        Real *s = a_bar.data() + b * 3 * H, *m = product_bar.data() + b * 3 * H;
        auto r = row(a, H), z = row(a + H, H), n = row(a + 2 * H, H);
        auto r_bar = row(s, H), z_bar = row(s + H, H), n_bar = row(s + 2 * H, H);
        auto q_row = row(q.data() + b * H, H), h_row = row(h.data() + b * H, H);
        auto g = row(h_bar.data() + b * H, H), q_bar_row = row(q_bar.data() + b * H, H);
        xt::noalias(n_bar) = g * (1 - z) * (1 - n * n);  // h' = (1 − z) ⊙ n + z ⊙ h
        xt::noalias(z_bar) = g * (h_row - n) * z * (1 - z);
        xt::noalias(g) = g * z;
        xt::noalias(r_bar) = n_bar * q_row * r * (1 - r);  // n = tanh(a_n + r ⊙ q)
        xt::noalias(q_bar_row) = n_bar * r;
        std::copy_n(s, 2 * H, m);
        std::copy_n(q_bar.data() + b * H, H, m + 2 * H);
    }
}

void layer_norm_rows(const Array& x, const Array& gain, const Array& bias, Real eps, Array& y, Array& statistics) {
    const std::size_t n = gain.size(), rows = x.size() / n;
    for (std::size_t r = 0; r < rows; ++r) {
        const Real* p = x.data() + r * n;
        const double mean = sum_of(n, [p](std::size_t j) { return p[j]; }) / double(n);
        const double variance =
            sum_of(n, [p, mean](std::size_t j) { return (double(p[j]) - mean) * (double(p[j]) - mean); }) / double(n);
        const double inverse = variance + double(eps) == 0 ? 0 : 1 / std::sqrt(variance + double(eps));
        for (std::size_t j = 0; j < n; ++j)
            y.data()[r * n + j] = Real((double(p[j]) - mean) * inverse) * gain.data()[j] + bias.data()[j];
        statistics.data()[2 * r] = Real(mean);
        statistics.data()[2 * r + 1] = Real(inverse);
    }
}

void layer_norm_rows_pullback(const Array& x, const Array& gain, const Array& statistics, const Array& y_bar,
                              Array* x_bar, Array& gain_bar, Array& bias_bar) {
    const std::size_t n = gain.size(), rows = x.size() / n;
    Vector<double> gain_sum(n, 0), bias_sum(n, 0), x_hat(n), g(n);
    for (std::size_t r = 0; r < rows; ++r) {
        const double mean = statistics.data()[2 * r], inverse = statistics.data()[2 * r + 1];
        const Real *p = x.data() + r * n, *q = y_bar.data() + r * n;
        for (std::size_t j = 0; j < n; ++j) {
            x_hat[j] = (double(p[j]) - mean) * inverse;
            g[j] = double(q[j]) * double(gain.data()[j]);
            gain_sum[j] += double(q[j]) * x_hat[j];
            bias_sum[j] += double(q[j]);
        }
        if (!x_bar) continue;
        const double mean_g = sum_of(n, [&](std::size_t j) { return g[j]; }) / double(n);
        const double mean_gx = sum_of(n, [&](std::size_t j) { return g[j] * x_hat[j]; }) / double(n);
        for (std::size_t j = 0; j < n; ++j)
            x_bar->data()[r * n + j] = Real((g[j] - mean_g - x_hat[j] * mean_gx) * inverse);
    }
    std::copy(gain_sum.begin(), gain_sum.end(), gain_bar.data());
    std::copy(bias_sum.begin(), bias_sum.end(), bias_bar.data());
}

}  // namespace lookback
