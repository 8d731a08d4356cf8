#include "linear.hpp"
#include "engine/blas.hpp"
#include "engine/pullback.hpp"

namespace lookback {

namespace {
std::size_t count(const Shape& batches) {
    std::size_t n = 1;
    for (std::size_t size : batches) n *= size;
    return n;
}

// The i-th batch of the result is made from this one of an operand with batches `own`, some of them repeated.
std::size_t source(std::size_t i, const Shape& batches, const Shape& own) {
    std::size_t at = 0, stride = 1;
    for (std::size_t axis = own.size(), lead = batches.size() - own.size(); axis-- > 0; stride *= own[axis]) {
        if (own[axis] != 1) at += i % batches[lead + axis] * stride;
        i /= batches[lead + axis];
    }
    return at;
}

// What to multiply: `batches` products, each of an m×k and a k×n matrix.
struct ProductPlan {
    std::size_t m, n, k;
    Shape batches, a_batches, b_batches, c;
    std::size_t a(std::size_t i) const { return source(i, batches, a_batches) * m * k; }  // offsets of the i-th
    std::size_t b(std::size_t i) const { return source(i, batches, b_batches) * k * n; }
};

ProductPlan plan(const char* op, Shape a, Shape b, Op op_b) {
    const auto reject = [op, op_b, a_shape = a, b_shape = b](const char* what) {
        fail<ShapeError>(op, what + text(a_shape) + " · " + text(b_shape) + (op_b == Op::transposed ? "ᵀ" : ""));
    };
    const std::size_t least = op_b == Op::transposed ? 2 : 1;
    if (a.size() < least || b.size() < least) reject(least == 2 ? "needs matrices: " : "a scalar has no rows: ");
    const bool row = a.size() == 1, column = b.size() == 1;
    if (row) a.insert_at(0, 1);
    if (column) b.push_back(1);

    ProductPlan p{
        a[a.size() - 2], b.back(), a.back(), {}, Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2), {}};
    std::size_t k = b[b.size() - 2];
    if (op_b == Op::transposed) std::swap(p.n, k);
    if (p.k != k) reject("inner sizes differ: ");
    for (std::size_t i = 1; i <= std::min(p.a_batches.size(), p.b_batches.size()); ++i) {
        const std::size_t s = *(p.a_batches.end() - i), t = *(p.b_batches.end() - i);
        if (s != t && s != 1 && t != 1) reject("leading axes do not broadcast: ");
    }
    p.batches = p.c = broadcast_shape(op, p.a_batches, p.b_batches);
    if (!row) p.c.push_back(p.m);
    if (!column) p.c.push_back(p.n);
    checked_size(op, p.c);
    if (count(p.b_batches) == 1) {  // one product for all rows of the left operand
        p.m *= count(p.batches);
        p.batches = p.a_batches = p.b_batches = {};
    }
    return p;
}

Array multiplied(const ProductPlan& plan, const Array& a, const Array& b, Op op_b) {
    Array c(plan.c);
    for (std::size_t i = 0; i < count(plan.batches); ++i)
        gemm(plan.m, plan.n, plan.k, a.data() + plan.a(i), Op::plain, b.data() + plan.b(i), op_b,
             c.data() + i * plan.m * plan.n, false);
    return c;
}

// Where an operand's cotangent goes: one that was repeated is a sum, to be begun at 0.
Target target(Cotangent x_bar, const ProductPlan& plan, const Shape& own) {
    return count(own) == count(plan.batches) ? x_bar.target() : Target{x_bar.zeroed(), true};
}

// Each operand is saved for the other's cotangent.
Saves operands(const Tensor& left, const Tensor& right) {
    return (right.is_constant() ? saves::nothing : saves::input(0)) |
           (left.is_constant() ? saves::nothing : saves::input(1));
}

template <Op op_b> Tensor multiply(const char* op, const Tensor& left, const Tensor& right) {
    Array product = multiplied(plan(op, left.shape(), right.shape(), op_b), left.value(), right.value(), op_b);
    return record(op, {left, right}, std::move(product), operands(left, right), [](Pullback& p) {
        const ProductPlan q = plan(p.op(), p.x_shape(0), p.x_shape(1), op_b);
        const Real* c_bar = p.y_bar().data();
        const std::size_t batches = count(q.batches), mn = q.m * q.n;
        if (p.needs(0)) {
            const Real* b = p.x(1).data();
            const Target t = target(p.x_bar(0), q, q.a_batches);
            for (std::size_t i = 0; i < batches; ++i) {
                Real* a_bar = t.array.data() + q.a(i);
                if (op_b == Op::plain)  // Ā += C̄ Bᵀ
                    gemm(q.m, q.k, q.n, c_bar + i * mn, Op::plain, b + q.b(i), Op::transposed, a_bar, t.add);
                else  // C = A Bᵀ: Ā += C̄ B
                    gemm(q.m, q.k, q.n, c_bar + i * mn, Op::plain, b + q.b(i), Op::plain, a_bar, t.add);
            }
        }
        if (p.needs(1)) {
            const Real* a = p.x(0).data();
            const Target t = target(p.x_bar(1), q, q.b_batches);
            for (std::size_t i = 0; i < batches; ++i) {
                Real* b_bar = t.array.data() + q.b(i);
                if (op_b == Op::plain)  // B̄ += Aᵀ C̄
                    gemm(q.k, q.n, q.m, a + q.a(i), Op::transposed, c_bar + i * mn, Op::plain, b_bar, t.add);
                else  // C = A Bᵀ: B̄ += C̄ᵀ A
                    gemm(q.n, q.k, q.m, c_bar + i * mn, Op::transposed, a + q.a(i), Op::plain, b_bar, t.add);
            }
        }
    });
}
}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return multiply<Op::plain>("matmul", a, b); }
Tensor matmul_transposed(const Tensor& a, const Tensor& b) {
    return multiply<Op::transposed>("matmul_transposed", a, b);
}

Tensor affine(const Tensor& x, const Tensor& W, const Tensor& b) {
    if (x.rank() == 0 || W.rank() != 2 || x.shape().back() != W.shape()[0] || b.shape() != Shape{W.shape()[1]})
        fail<ShapeError>("affine", "x (…,I), W (I,O) and b (O) do not fit: " + text(x.shape()) + ", " +
                                       text(W.shape()) + " and " + text(b.shape()));
    const ProductPlan q = plan("affine", x.shape(), W.shape(), Op::plain);
    Array y(q.c);
    for (std::size_t i = 0; i < q.m; ++i) std::copy_n(b.value().data(), q.n, y.data() + i * q.n);
    gemm(q.m, q.n, q.k, x.value().data(), Op::plain, W.value().data(), Op::plain, y.data(), true);
    return record("affine", {x, W, b}, std::move(y), operands(x, W), [](Pullback& p) {
        const Array& y_bar = p.y_bar();
        const auto sizes = [&] { return plan(p.op(), p.x_shape(0), p.x_shape(1), Op::plain); };
        if (p.needs(0)) {
            const ProductPlan r = sizes();
            const Target t = p.x_bar(0).target();
            gemm(r.m, r.k, r.n, y_bar.data(), Op::plain, p.x(1).data(), Op::transposed, t.array.data(), t.add);
        }
        if (p.needs(1)) {
            const ProductPlan r = sizes();
            const Target t = p.x_bar(1).target();
            gemm(r.k, r.n, r.m, p.x(0).data(), Op::transposed, y_bar.data(), Op::plain, t.array.data(), t.add);
        }
        p.x_bar(2) += y_bar;
    });
}

}  // namespace lookback
