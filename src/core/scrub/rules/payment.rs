//! Payment and shops: Stripe, Square, Shopify, PayPal's kin.

use super::super::bytes::{ALNUM, BASE64, EQUALS, HEX, URL64};
use super::{Family, Prefix};

pub(super) const FAMILY: Family = Family {
    name: "payment",
    pii: false,
    kinds: &["stripe-secret", "stripe-webhook", "square", "shopify", "razorpay"],
    prefixes: &[
        Prefix::run("sk_live_", "stripe-secret", ALNUM, 20),
        Prefix::run("sk_test_", "stripe-secret", ALNUM, 20),
        Prefix::run("rk_live_", "stripe-secret", ALNUM, 20),
        Prefix::run("rk_test_", "stripe-secret", ALNUM, 20),
        Prefix::run("sk_org_live_", "stripe-secret", ALNUM, 20),
        Prefix::run("whsec_", "stripe-webhook", BASE64 | EQUALS, 24),
        Prefix::run("sq0atp-", "square", URL64, 22),
        Prefix::run("sq0csp-", "square", URL64, 40),
        Prefix::run("shpat_", "shopify", HEX | ALNUM, 32),
        Prefix::run("shpss_", "shopify", HEX | ALNUM, 32),
        Prefix::run("shpca_", "shopify", HEX | ALNUM, 32),
        Prefix::run("shppa_", "shopify", HEX | ALNUM, 32),
        Prefix::exact("rzp_live_", "razorpay", ALNUM, 14, 14),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["charge with sk_", "live_", "Zq81kTmVx0bYw3RcNe57PsDh"],
        &["shp", "at_", "5fa93c1be07d246891bc0e7f3a5d24c6"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[&["pk_", "live_37y6tkeEYjiJHB3uAfNxS3Gf"], &["sk_", "test_..."]],
};
