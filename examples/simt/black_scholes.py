"""Prices of European options by the formula of Black and Scholes: functions of mathematics."""

import math

import numpy as np
from picokernel import simt


@simt.jit(device=True)
def normal(d):
    """The standard normal distribution up to d."""
    return 0.5 * math.erfc(-d * math.sqrt(0.5))


@simt.jit
def black_scholes(call, put, price, strike, years, rate, volatility):
    i = simt.grid(1)
    if i < call.size:
        spread = volatility * math.sqrt(years[i])
        d1 = (
            math.log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]
        ) / spread
        d2 = d1 - spread
        discounted = strike[i] * math.exp(-rate * years[i])
        call[i] = price[i] * normal(d1) - discounted * normal(d2)
        put[i] = discounted * normal(-d2) - price[i] * normal(-d1)


def main(n=100_003):
    rng = np.random.default_rng(0)
    price, strike = rng.uniform(5, 100, (2, n)).astype(np.float32)
    years = rng.uniform(0.25, 10, n).astype(np.float32)
    call, put = np.empty((2, n), np.float32)
    rate, volatility = np.float32(0.02), np.float32(0.3)
    black_scholes.forall(n)(call, put, price, strike, years, rate, volatility)
    # A call less a put is worth the share less the discounted strike, whatever the distribution.
    parity = price - strike * np.exp(-np.float64(rate) * years)
    np.testing.assert_allclose(call.astype(np.float64) - put, parity, atol=1e-4)
    some = slice(0, None, max(n // 1000, 1))
    plain = [
        0.5 * p * math.erfc(-d1 / 2**0.5) - 0.5 * k * math.exp(-rate * t) * math.erfc(-d2 / 2**0.5)
        for p, k, t in zip(
            price[some].tolist(), strike[some].tolist(), years[some].tolist(), strict=True
        )
        for spread in [volatility * t**0.5]
        for d1 in [(math.log(p / k) + (rate + volatility**2 / 2) * t) / spread]
        for d2 in [d1 - spread]
    ]
    np.testing.assert_allclose(call[some], plain, atol=1e-4)
    print(f"black_scholes: {n:,} prices agree with Python's")


if __name__ == "__main__":
    main()
