//! Exact amounts of coins: how they are read, cut, added and printed.
//!
//! An amount is a decimal number of coins, never a float, and every operation that could leave the range says so. This
//! file knows nothing of networks, entries or DynamoDB.

use std::fmt;

use rust_decimal::{Decimal, RoundingStrategy};

pub use encapsulate::{Amount, Scale};

/// Most digits before the point that an amount received from outside may have.
pub const INTEGER_DIGITS_MAX: usize = 15;

/// Most characters that an amount received from outside may have, so that it can be kept as received in an entry.
pub const RECEIVED_LENGTH_MAX: usize = 64;

/// The constructors are the only door: not even the rest of this file can make an amount or a scale out of range.
mod encapsulate {
    use rust_decimal::Decimal;

    /// A signed, exact number of coins with at most eight decimals, below 10^20 on either side of zero: what a decimal of 28
    /// digits holds without rounding, also as a sum.
    ///
    /// Kept in its shortest form, so that equal amounts print alike: `10.50` is `10.5`.
    #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Amount(Decimal);

    impl Amount {
        /// No coins.
        pub const ZERO: Amount = Amount(Decimal::ZERO);

        /// Takes a decimal in range; `None` when it is 10^20 or more on either side of zero, or has more decimals.
        pub(super) fn new(value: Decimal) -> Option<Amount> {
            /// 10^20 in three words.
            const LIMIT: Decimal = Decimal::from_parts(0x6310_0000, 0x6BC7_5E2D, 0x5, false, 0);
            let value = value.normalize();
            (value.abs() < LIMIT && value.scale() <= u32::from(Scale::MAX)).then_some(Amount(value))
        }

        pub(super) fn decimal(self) -> Decimal {
            self.0
        }
    }

    /// How many decimals of a coin are kept, 0 to [`Scale::MAX`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Scale(u8);

    impl Scale {
        /// The most decimals that a coin can have.
        pub const MAX: u8 = 8;

        /// Takes a number of decimals; `None` above [`Scale::MAX`].
        pub fn new(decimals: u8) -> Option<Scale> {
            (decimals <= Self::MAX).then_some(Scale(decimals))
        }

        /// The number of decimals.
        pub fn decimals(self) -> u8 {
            self.0
        }
    }
}

/// Why a text is not an amount. `Display` is written for the person who set the network's postback up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    #[error("not a plain decimal number such as 12.50")]
    NotPlain,
    #[error("more than {INTEGER_DIGITS_MAX} digits before the point")]
    TooLarge,
    #[error("longer than {RECEIVED_LENGTH_MAX} characters")]
    TooLong,
}

/// A plain decimal as a caller wrote it: an optional minus, digits, an optional point and digits.
///
/// Anything else (an exponent, a plus, a space, a thousands separator, NaN) is refused, because it would have to be
/// guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
}

impl<'a> Received<'a> {
    /// Reads a plain decimal of any size up to [`RECEIVED_LENGTH_MAX`] characters.
    ///
    /// # Errors
    ///
    /// [`AmountError::TooLong`] and [`AmountError::NotPlain`].
    pub fn read(text: &'a str) -> Result<Received<'a>, AmountError> {
        if text.len() > RECEIVED_LENGTH_MAX {
            return Err(AmountError::TooLong);
        }
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (integer, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if integer.len() + fraction.len() == 0 || !digits(integer) || !digits(fraction) {
            return Err(AmountError::NotPlain);
        }
        let negative = unsigned.len() < text.len() && text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
        Ok(Received { negative, integer: integer.trim_start_matches('0'), fraction })
    }

    /// Whether it is below zero. `-0` is zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// How many digits it has from the first to the last that counts.
    pub fn digits(&self) -> usize {
        let all = [self.integer, self.fraction].concat();
        all.trim_matches('0').len()
    }

    /// How many decimals it has that count.
    pub fn decimals(&self) -> usize {
        self.fraction.trim_end_matches('0').len()
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.integer.bytes().chain(self.fraction.bytes()).all(|digit| digit == b'0')
    }

    /// The amount in coins, decimals beyond the scale cut toward zero: a user never gets a fraction that was not paid.
    ///
    /// # Errors
    ///
    /// [`AmountError::TooLarge`].
    pub fn cut(&self, scale: Scale) -> Result<Amount, AmountError> {
        if self.integer.len() > INTEGER_DIGITS_MAX {
            return Err(AmountError::TooLarge);
        }
        let (units, decimals) = self.units(scale.decimals().into());
        self.signed(Decimal::from_i128_with_scale(units, decimals))
    }

    /// The coins that it is worth at a rate, exactly, decimals beyond the scale cut toward zero. Of the money itself eight
    /// decimals count.
    ///
    /// # Errors
    ///
    /// [`AmountError::TooLarge`].
    pub fn exchanged(&self, rate: Rate, scale: Scale) -> Result<Amount, AmountError> {
        if self.integer.len() > INTEGER_DIGITS_MAX {
            return Err(AmountError::TooLarge);
        }
        let (units, decimals) = self.units(Scale::MAX.into());
        let product = units.checked_mul(rate.units).ok_or(AmountError::TooLarge)?;
        let beyond = (decimals + rate.decimals).saturating_sub(scale.decimals().into());
        let kept = decimals + rate.decimals - beyond;
        let coins = product / 10i128.pow(beyond);
        self.signed(Decimal::try_from_i128_with_scale(coins, kept).map_err(|_| AmountError::TooLarge)?)
    }

    /// The hundredth of it: cents as dollars.
    ///
    /// # Errors
    ///
    /// [`AmountError::TooLarge`].
    pub fn hundredth(&self, scale: Scale) -> Result<Amount, AmountError> {
        self.exchanged(Rate { units: 1, decimals: 2 }, scale)
    }

    /// Without its sign, in units of the last of at most `max` decimals, and how many decimals those are.
    fn units(&self, max: u32) -> (i128, u32) {
        let (mut value, mut decimals) = (0i128, 0);
        for digit in self.integer.bytes() {
            value = value * 10 + i128::from(digit - b'0');
        }
        for digit in self.fraction.bytes().take(usize::try_from(max).unwrap_or(0)) {
            value = value * 10 + i128::from(digit - b'0');
            decimals += 1;
        }
        (value, decimals)
    }

    fn signed(&self, magnitude: Decimal) -> Result<Amount, AmountError> {
        Amount::new(if self.negative { -magnitude } else { magnitude }).ok_or(AmountError::TooLarge)
    }
}

/// Coins for one dollar, or for one cent of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Coins, in units of the last decimal.
    units: i128,
    decimals: u32,
}

impl Rate {
    /// Most digits before the point, so that no product leaves the range.
    const INTEGER_DIGITS_MAX: usize = 7;

    /// Reads coins for one dollar: a plain decimal above zero with at most 7 digits before the point and 8 behind.
    pub fn read(text: &str) -> Option<Rate> {
        let received = Received::read(text).ok()?;
        if received.integer.len() > Self::INTEGER_DIGITS_MAX || received.fraction.len() > Scale::MAX.into() {
            return None;
        }
        let (units, decimals) = received.units(Scale::MAX.into());
        (units > 0 && !received.negative).then_some(Rate { units, decimals })
    }

    /// The same rate for amounts in cents.
    #[must_use]
    pub fn of_cents(self) -> Rate {
        Rate { decimals: self.decimals + 2, ..self }
    }
}

impl Amount {
    /// Reads an amount that we wrote ourselves, such as a stored number. `None` when it is not one.
    pub fn stored(text: &str) -> Option<Amount> {
        Decimal::from_str_exact(text).ok().and_then(Amount::new)
    }

    /// The sum, or `None` out of range.
    pub fn checked_add(self, other: Amount) -> Option<Amount> {
        self.decimal().checked_add(other.decimal()).and_then(Amount::new)
    }

    /// The same size, the other sign.
    #[must_use]
    pub fn negated(self) -> Amount {
        Amount::new(-self.decimal()).unwrap_or(Amount::ZERO)
    }

    /// With exactly as many decimals as the scale has, such as `12.50`; more are cut downward, so that nobody is told of
    /// more than there is.
    pub fn fixed(self, scale: Scale) -> String {
        let decimals = scale.decimals().into();
        let mut value = self.decimal().round_dp_with_strategy(decimals, RoundingStrategy::ToNegativeInfinity);
        value.rescale(decimals);
        // What is below zero stays so in print only where a digit says it.
        if value.is_zero() { value.abs().to_string() } else { value.to_string() }
    }

    /// How many of `parts` equal parts of `whole` it comes to, rounded down and at most all of them: the length of a bar.
    pub fn parts_of(self, whole: Amount, parts: u32) -> u32 {
        let share = self.decimal().checked_div(whole.decimal()).unwrap_or_default();
        let length = share.checked_mul(parts.into()).unwrap_or_default();
        u32::try_from(length.trunc()).unwrap_or(0).min(parts)
    }

    /// Whether it is no coins at all.
    pub fn is_zero(self) -> bool {
        self.decimal().is_zero()
    }
}

/// Plain decimal digits without exponent, trailing zeros or a negative zero: what DynamoDB takes as a number.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.decimal(), f)
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn cut(text: &str, decimals: u8) -> Result<String, AmountError> {
        Received::read(text)?.cut(Scale::new(decimals).unwrap()).map(|amount| amount.to_string())
    }

    #[test]
    fn amounts_are_read_as_plain_decimals_and_cut_toward_zero() {
        for (text, decimals, expected) in [
            ("10", 2, "10"),
            ("10.50", 2, "10.5"),
            ("662.6500", 2, "662.65"),
            ("0.019", 2, "0.01"),
            ("0.009", 2, "0"),
            ("-0.009", 2, "0"),
            ("-1.239", 2, "-1.23"),
            ("1.999", 0, "1"),
            ("0", 2, "0"),
            ("-0", 2, "0"),
            ("-0.00", 2, "0"),
            ("007.5", 2, "7.5"),
            (".5", 2, "0.5"),
            ("5.", 2, "5"),
            ("0000000000000000000001", 2, "1"),
            ("999999999999999.99999999", 8, "999999999999999.99999999"),
            ("0.33333333333333333333333333333333333333333333333333333333", 8, "0.33333333"),
        ] {
            assert_eq!(cut(text, decimals).as_deref(), Ok(expected), "{text} at {decimals}");
        }
    }

    #[test]
    fn whatever_would_have_to_be_guessed_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "-.",
            "--1",
            "+1",
            " 1",
            "1 ",
            "1e3",
            "1E3",
            "1e-3",
            "NaN",
            "nan",
            "inf",
            "Infinity",
            "1,000",
            "1,5",
            "1.000.000",
            "1_000",
            "0x10",
            "1.5.",
            "१२",
            "1\0",
            "1-",
            "$1",
            "1%",
        ] {
            assert_eq!(cut(text, 2), Err(AmountError::NotPlain), "{text:?}");
        }
        assert_eq!(cut("1000000000000000", 2), Err(AmountError::TooLarge));
        assert_eq!(cut(&"9".repeat(64), 2), Err(AmountError::TooLarge));
        assert_eq!(cut(&"0".repeat(65), 2), Err(AmountError::TooLong));
    }

    #[test]
    fn money_is_exchanged_exactly_and_cut_toward_zero() {
        let exchanged = |text: &str, rate: &str, cents: bool| {
            let rate = Rate::read(rate).unwrap();
            let rate = if cents { rate.of_cents() } else { rate };
            Received::read(text).unwrap().exchanged(rate, Scale::new(2).unwrap()).map(|amount| amount.to_string())
        };
        for (text, rate, cents, expected) in [
            ("0.50", "1000", false, "500"),
            ("0.3333", "1000", false, "333.3"),
            ("0.0333333", "99.9", false, "3.32"),
            ("30", "1000", true, "300"),
            ("1", "0.5", true, "0"),
            ("-0.50", "1000", false, "-500"),
            ("12.99999999", "0.00000001", false, "0"),
            ("999999999999999", "100", false, "99999999999999900"),
        ] {
            assert_eq!(exchanged(text, rate, cents).as_deref(), Ok(expected), "{text} at {rate}");
        }
        assert_eq!(exchanged("999999999999999.99999999", "9999999.99999999", false), Err(AmountError::TooLarge));
        assert_eq!(exchanged("1000000000000000", "1", false), Err(AmountError::TooLarge));
        for rate in ["0", "-1", "1e3", "10000000", "0.000000001", "", &"9".repeat(64)] {
            assert_eq!(Rate::read(rate), None, "{rate}");
        }
    }

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_longer_than_the_whole() {
        let parts =
            |amount: &str, whole: &str| Amount::stored(amount).unwrap().parts_of(Amount::stored(whole).unwrap(), 1000);
        assert_eq!(parts("5", "10"), 500);
        assert_eq!(parts("0.00000001", "99999999999999999999"), 0);
        assert_eq!(parts("99999999999999999999", "99999999999999999999"), 1000);
        assert_eq!([parts("11", "10"), parts("-1", "10"), parts("1", "0")], [1000, 0, 0]);
    }

    #[test]
    fn a_fixed_print_has_all_its_places_and_never_tells_of_more_than_there_is() {
        let fixed = |text: &str| Amount::stored(text).unwrap().fixed(Scale::new(2).unwrap());
        for (amount, expected) in [
            ("0", "0.00"),
            ("12.5", "12.50"),
            ("12", "12.00"),
            ("0.009", "0.00"),
            ("1.999", "1.99"),
            ("-0.001", "-0.01"),
            ("-1.239", "-1.24"),
            ("-3", "-3.00"),
            ("99999999999999999999", "99999999999999999999.00"),
        ] {
            assert_eq!(fixed(amount), expected, "{amount}");
        }
        assert_eq!(Amount::stored("7").unwrap().fixed(Scale::new(0).unwrap()), "7");
    }

    #[test]
    fn only_digits_that_count_are_counted() {
        let of = |text: &str| {
            let received = Received::read(text).unwrap();
            (received.digits(), received.decimals())
        };
        assert_eq!(of("12.50"), (3, 1));
        assert_eq!(of("0.05"), (1, 2));
        assert_eq!(of("1000"), (1, 0));
        assert_eq!(of("9007199254740993.25"), (18, 2));
        assert_eq!(of("0"), (0, 0));
    }

    #[test]
    fn sums_leave_the_range_as_none() {
        let large = Amount::stored(&format!("{}.99999999", "9".repeat(20))).unwrap();
        assert_eq!(large.checked_add(Amount::stored("0.00000001").unwrap()), None);
        assert_eq!(large.checked_add(large.negated()), Some(Amount::ZERO));
        assert_eq!(Amount::stored(&format!("1{}", "0".repeat(20))), None);
        assert_eq!(Amount::stored("0.000000001"), None);
        assert_eq!(Amount::stored("999999999999999999999.99999999"), None);
        assert_eq!(Amount::stored("12.500").unwrap().to_string(), "12.5");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_as_the_same_amount(units in -(10i128.pow(15) - 1)..10i128.pow(15), places in 0u32..=8) {
            let amount = Amount::new(Decimal::from_i128_with_scale(units, places)).unwrap();
            let text = amount.to_string();
            prop_assert_eq!(Amount::stored(&text), Some(amount));
            let received = Received::read(&text).unwrap();
            prop_assert_eq!(received.cut(Scale::new(8).unwrap()), Ok(amount));
            prop_assert_eq!(received.is_negative(), units < 0);
            prop_assert!(!text.contains(['e', 'E', '+']));
        }

        #[test]
        fn cutting_never_adds_coins_and_drops_less_than_one_unit(whole in 0u64..10u64.pow(15), fraction in "[0-9]{0,40}", places in 0u8..=8) {
            let text = format!("{whole}.{fraction}");
            let amount = Received::read(&text).unwrap().cut(Scale::new(places).unwrap()).unwrap();
            let kept = &fraction[..fraction.len().min(usize::from(places))];
            prop_assert_eq!(amount, Amount::stored(&format!("{whole}.{kept}0")).unwrap());
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text in ".*") {
            if let Ok(received) = Received::read(&text) {
                let _ = received.cut(Scale::new(2).unwrap());
            }
        }
    }
}
