//! What it costs to verify and read one postback of about a kilobyte, for every network that is shipped:
//! `cargo bench --bench recipes --profile release`.
//!
//! Measures time on this machine, so it proves nothing; tests never look at it. Prints microseconds, the median of many
//! rounds, slowest first.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::time::Instant;

use postback::event::Request;
use postback::id::{Currency, Network};
use postback::money::Scale;
use postback::offerwall::{self, Coins, Report};
use postback::preset::{Catalogue, Class, Preset};
use postback::sample::{self, Sample};
use postback::secrets::Secrets;
use postback::signature::Algorithm;

const ROUNDS: usize = 31;
const CALLS: u32 = 200;

fn main() {
    let shipped = Catalogue::default();
    let presets: Vec<_> = shipped.presets().unwrap().iter().map(padded).collect();
    let secrets = Secrets::read(&sample::secrets(&presets).to_string()).expect("the examples' secrets read");
    let coins = Coins { currency: Currency::new("coins").unwrap(), scale: Scale::new(2).unwrap() };
    let mut measured: Vec<_> = presets
        .iter()
        .map(|preset| {
            let keys = secrets.of(&preset.network);
            let request = request(preset, keys);
            let bytes = request.query.len() + request.body().map_or(0, |body| body.len());
            let read = || offerwall::read(preset, keys, &coins, black_box(&request));
            assert!(matches!(read(), Ok(Report::Claim(_))), "{}: {:?}", preset.network, read());
            (median(|| black_box(read()).is_ok()), bytes, preset.network.as_str())
        })
        .collect();
    measured.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("{:<18}{:>8}{:>8}", "network", "µs", "bytes");
    for (microseconds, bytes, network) in measured {
        println!("{network:<18}{microseconds:>8.1}{bytes:>8}");
    }
}

/// The median over rounds of the microseconds that a call takes.
fn median(call: impl Fn() -> bool) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..CALLS {
                assert!(call());
            }
            started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// The network with a postback URL that makes its requests about a kilobyte long.
fn padded(preset: &Preset) -> Preset {
    let padding: Vec<_> = (0..10).map(|number| format!("{}{number}={{x}}", "p".repeat(75))).collect();
    let postback = preset.about.postback.as_deref().map(|postback| format!("{postback}&")).unwrap_or_default();
    let yours = preset.yours.iter().map(|(name, _)| format!("yours.{name} = [\"2747237135\"]\n")).collect::<String>();
    let document = format!(
        "[networks.{network}]\nnetwork.postback = '{postback}{}'\n{yours}",
        padding.join("&"),
        network = preset.network
    );
    let catalogue = Catalogue::with("bench.toml", &document).expect("the padding reads");
    catalogue.preset(&Network::new(preset.network.as_str()).unwrap()).expect("a padded network reads")
}

/// A signed request: an example, or where only the network can sign, its event file.
fn request(preset: &Preset, keys: &[postback::signature::Key]) -> Request {
    if preset.signature.algorithm == Algorithm::EcdsaP256 {
        let file = format!("{}/events/offerwall/{}-credit.json", env!("CARGO_MANIFEST_DIR"), preset.network);
        return Request::read(&std::fs::read_to_string(file).expect("its event is there")).expect("its event reads");
    }
    let sample =
        Sample { class: Class::Credit, user: "42", trans_id: "conv-7", amount: "10.50", seconds: 1_780_000_000 };
    let none = postback::signature::Key::default();
    let example = sample::example(preset, keys.first().unwrap_or(&none), &sample, "https://rewards.example");
    example.unwrap_or_else(|why| panic!("{}: {why}", preset.network)).request()
}
