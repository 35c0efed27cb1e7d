//! Arithmetic against exact rationals of another library, and doubles against their neighbours.

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;
use serde_json::json;
use sessionlog::core::cost::arithmetic::{
    ATTO_PER_PICO, MAX_COUNT, cents_nearest, cents_text, count_of, exact, pico_of, pico_of_cents, pico_of_usd,
    pico_of_usd_number, usd_nearest, usd_text,
};
use sessionlog::core::cost::{self, CostTotal, PriceTable};

use super::NOW;

fn ten(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

/// Rounds half to even, by definition.
fn rounded(value: &BigRational) -> BigInt {
    let floor = value.floor().to_integer();
    let rest = value - BigRational::from(floor.clone());
    let half = BigRational::new(1.into(), 2.into());
    let is_odd = &floor % BigInt::from(2) != BigInt::from(0);
    if rest > half || (rest == half && is_odd) { floor + 1 } else { floor }
}

/// The exact value of a double: every finite one is a whole number times a power of two.
fn rational(double: f64) -> BigRational {
    let bits = double.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let two = BigInt::from(2).pow(exponent.unsigned_abs() as u32);
    let mantissa = BigInt::from(mantissa);
    if exponent < 0 { BigRational::new(mantissa, two) } else { BigRational::from(mantissa * two) }
}

/// No double is nearer to `value` than this one, and of two equally near ones it is the even one.
fn is_nearest(double: f64, value: &BigRational) -> bool {
    let distance = |d: f64| {
        let difference = rational(d) - value;
        if difference < BigRational::from(BigInt::from(0)) { -difference } else { difference }
    };
    let own = distance(double);
    let neighbours = [double.to_bits().wrapping_sub(1), double.to_bits() + 1].map(f64::from_bits);
    neighbours.iter().filter(|n| n.is_finite() && **n >= 0.0).all(|n| {
        let other = distance(*n);
        own < other || (own == other && double.to_bits().is_multiple_of(2))
    })
}

fn pico(n: i128, places: u32) -> BigRational {
    BigRational::new(n.into(), ten(places))
}

proptest! {
    #[test]
    fn doubles_are_the_nearest(amount in prop_oneof![0i128..1_000_000, 0i128..1 << 53, 0i128..1 << 70, 0i128..i128::MAX / 1_000_000]) {
        prop_assert!(is_nearest(cents_nearest(amount), &pico(amount, 10)), "{}", amount);
        prop_assert!(is_nearest(usd_nearest(amount), &pico(amount, 12)), "{}", amount);
    }

    #[test]
    fn rounding_is_half_to_even(atto in any::<u128>(), whole in 0u128..1 << 60, tie in 0u128..3) {
        let one = |atto: u128| rounded(&BigRational::new(atto.into(), ten(6)));
        prop_assert_eq!(pico_of(atto, ATTO_PER_PICO).map(BigInt::from), Some(one(atto)));
        let near = whole * 1_000_000 + 499_999 + tie;
        prop_assert_eq!(pico_of(near, ATTO_PER_PICO).map(BigInt::from), Some(one(near)));
        prop_assert_eq!(pico_of(atto, ATTO_PER_PICO * 1_000_000).map(BigInt::from), Some(rounded(&BigRational::new(atto.into(), ten(12)))));
    }

    #[test]
    fn decimals_are_read_exactly(whole in 0u64.., fraction in "[0-9]{0,20}", exponent in -12i32..1) {
        let text = if fraction.is_empty() { format!("{whole}e{exponent}") } else { format!("{whole}.{fraction}e{exponent}") };
        let digits: BigInt = format!("{whole}{fraction}").parse().unwrap();
        let shift = exponent - fraction.len() as i32;
        let power = BigRational::from(ten(shift.unsigned_abs()));
        let value = BigRational::from(digits) * if shift < 0 { power.recip() } else { power };
        prop_assert_eq!(pico_of_usd(&text).map(BigInt::from), Some(rounded(&(&value * ten(12)))), "{}", text);
        prop_assert_eq!(pico_of_cents(&text).map(BigInt::from), Some(rounded(&(&value * ten(10)))), "{}", text);
    }

    #[test]
    fn texts_are_exact_and_read_back(amount in 0i128..i128::MAX / 1_000_000) {
        for (text, back) in [(usd_text(amount), pico_of_usd(&usd_text(amount))), (cents_text(amount), pico_of_cents(&cents_text(amount)))] {
            prop_assert_eq!(back, Some(amount));
            let padded = text.contains('.') && text.ends_with(['0', '.']);
            prop_assert!(!text.contains(['e', 'E']) && !padded, "{}", text);
        }
    }

    #[test]
    fn a_number_is_the_shortest_decimal_that_reads_as_it(dollars in 0.0f64..1e9) {
        let shortest = serde_json::to_string(&dollars).unwrap();
        // Written with all the digits of the double, it is the same amount.
        let long = format!("{dollars:.40}");
        prop_assert_eq!(pico_of_usd_number(&long), pico_of_usd(&shortest));
        prop_assert_eq!(pico_of_usd_number(&shortest), pico_of_usd(&shortest));
    }

    #[test]
    fn a_total_does_not_depend_on_the_order(mut amounts in prop::collection::vec(0u64..1_000_000_000, 0..40), seed in any::<u64>()) {
        let sum = |amounts: &[u64]| {
            let mut total = CostTotal::default();
            amounts.iter().for_each(|a| total.add_cents(&format!("{a}e-7")).unwrap());
            (total.pico(), total.cents())
        };
        let forward = sum(&amounts);
        amounts.sort_by_key(|a| a.wrapping_mul(seed | 1));
        prop_assert_eq!(forward, sum(&amounts));
        prop_assert_eq!(forward.0, amounts.iter().map(|a| i128::from(*a) * 1_000).sum::<i128>());
    }

    #[test]
    fn a_price_is_rate_times_tokens(input in 0u64..1 << 50, cached in 0u64..1 << 50, output in 0u64..1 << 50, rates in prop::array::uniform3(0u64..1 << 40)) {
        let cached = cached.min(input);
        // Up to twelve decimal places: picodollars per million tokens.
        let rate = |r: u64| usd_text(i128::from(r));
        let table = json!({"schema": "sessionlog.prices/1", "providers": [{"id": "a", "models": [{"id": "m", "prices": [
            {"rates": {"input": rate(rates[0]), "cache_read": rate(rates[1]), "output": rate(rates[2])}}]}]}]});
        let table = PriceTable::from_json(&table.to_string()).unwrap();
        let record = json!({"apiShape": "openai.chat", "provider": "a", "model": "m", "raw": {
            "prompt_tokens": input, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": cached}}});
        let found = cost::price_record(&record.to_string(), &table, NOW, |_, c| c.pico).unwrap();
        let part = |tokens: u64, rate: u64| BigRational::new(BigInt::from(tokens) * rate, ten(6));
        let sum = part(input - cached, rates[0]) + part(cached, rates[1]) + part(output, rates[2]);
        prop_assert_eq!(found.map(BigInt::from), Some(rounded(&sum)));
    }

    #[test]
    fn nothing_makes_it_panic(raw in "[\\[\\]{}\",:0-9eE.a-z_-]{0,60}", shape in 0usize..20) {
        let table = PriceTable::builtin().unwrap();
        let shape = sessionlog::core::cost::shapes::SHAPES[shape].name;
        for text in [raw.clone(), format!("{{\"apiShape\":\"{shape}\",\"raw\":{raw}}}")] {
            let _ = cost::price_record(&text, &table, NOW, |_, c| c.pico);
            let _ = cost::merge_stream(shape, &text);
            let _ = cost::normalize(shape, &text, "{}");
            let _ = PriceTable::from_json(&text);
            let _ = cost::priced_note("step/end", &text, NOW, &table);
        }
    }
}

#[test]
fn counts_are_whole_and_never_negative() {
    for (text, count) in [
        ("0", 0),
        ("12", 12),
        ("-3", 0),
        ("1e3", 1_000),
        ("12.0", 12),
        ("12.9", 12),
        ("0.9", 0),
        ("1.5e1", 15),
        ("9007199254740991", MAX_COUNT - 1),
        ("9007199254740993", MAX_COUNT),
        ("1e400", MAX_COUNT),
        ("99999999999999999999999999999999999999999999", MAX_COUNT),
        ("1e-400", 0),
        ("000", 0),
        ("", 0),
        ("NaN", 0),
    ] {
        assert_eq!(count_of(text), count, "{text}");
    }
}

#[test]
fn amounts_that_are_none_are_refused() {
    for bad in [
        "",
        "-1",
        "-0.000001",
        "abc",
        "1,5",
        "0x1",
        "1.",
        ".5",
        "01",
        "+1",
        " 1",
        "1e",
        "1e400",
        "1e99999999999",
        "NaN",
        "Infinity",
    ] {
        assert_eq!(pico_of_usd(bad), None, "{bad}");
        assert!(CostTotal::default().add_cents(bad).is_err(), "{bad}");
    }
    assert_eq!((pico_of_usd("-0"), pico_of_usd("1e-99999999999"), pico_of_usd("0e5")), (Some(0), Some(0), Some(0)));
}

#[test]
fn a_total_never_overflows() {
    let mut total = CostTotal::default();
    total.add_pico(i128::MAX).unwrap();
    assert_eq!(total.add_pico(1).unwrap_err().code(), "invalid_usage");
    assert_eq!(total.add_pico(-1).unwrap_err().code(), "invalid_usage");
    assert_eq!(total.pico(), i128::MAX);
}

#[test]
fn rates_must_be_exact() {
    assert_eq!(exact("0.000000000001", 12), Ok(1));
    assert_eq!(exact("150", 12), Ok(150_000_000_000_000));
    assert_eq!(exact("3.0000000000000000", 12), Ok(3_000_000_000_000));
    for bad in ["-1", "0.0000000000001", "1e30", "x", ""] {
        assert!(exact(bad, 12).is_err(), "{bad}");
    }
}

#[test]
fn an_amount_too_large_to_count_is_unknown_and_says_so() {
    let table = json!({"schema": "sessionlog.prices/1", "providers": [{"id": "a", "models": [
        {"id": "m", "geo": {"us": "1000000"}, "prices": [{"rates": {"input": "1000000000"}}]}]}]});
    let table = PriceTable::from_json(&table.to_string()).unwrap();
    let record = json!({"apiShape": "anthropic.messages", "provider": "a", "model": "m",
        "raw": {"input_tokens": 1e20, "inference_geo": "us"}});
    let found = cost::price_record(&record.to_string(), &table, NOW, |_, c| c).unwrap();
    assert_eq!(found.pico, None);
    assert_eq!(found.flags.names().collect::<Vec<_>>(), ["count_capped", "overflow"]);
}
