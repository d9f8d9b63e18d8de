//! The three formulas that learning rests on. Exact where that is cheap, and never a panic.

/// Wilson's interval for `good` of `of` at 95 %: where the true rate lies.
pub fn wilson(good: usize, of: usize) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    if of == 0 {
        return (0.0, 1.0);
    }
    let n = of as f64;
    let rate = good.min(of) as f64 / n;
    let middle = rate + Z * Z / (2.0 * n);
    let spread = Z * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    let low = ((middle - spread) / scale).clamp(0.0, 1.0);
    let high = ((middle + spread) / scale).clamp(0.0, 1.0);
    (low, high)
}

/// ln(n!), exact for small numbers and by Stirling's series above.
fn ln_factorial(n: usize) -> f64 {
    if n < 32 {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64;
    x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x * x * x)
}

fn ln_choose(n: usize, k: usize) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// The sum of numbers that are given as logarithms, as a logarithm.
fn ln_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + logs.map(|log| (log - most).exp()).sum::<f64>().ln()
}

/// ln P(X ≥ `hits`) when each of `of` succeeds with probability `p`.
pub fn binomial_tail(hits: usize, of: usize, p: f64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    if hits > of || p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return 0.0;
    }
    let (yes, no) = (p.ln(), (1.0 - p).ln());
    let terms = (hits..=of).map(|k| ln_choose(of, k) + k as f64 * yes + (of - k) as f64 * no);
    ln_sum(terms).min(0.0)
}

/// Fisher's exact test, one-sided: ln P(at least `a` of the first group fail) if both groups fail
/// alike. `a` of `of_a` failed in the first, `b` of `of_b` in the second.
pub fn fisher(a: usize, of_a: usize, b: usize, of_b: usize) -> f64 {
    let (a, b) = (a.min(of_a), b.min(of_b));
    let failed = a + b;
    let all = ln_choose(of_a + of_b, failed);
    let most = failed.min(of_a);
    let terms = (a..=most).map(|k| ln_choose(of_a, k) + ln_choose(of_b, failed - k) - all);
    ln_sum(terms).min(0.0)
}
