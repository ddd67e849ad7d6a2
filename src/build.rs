//! Rebuilds the crate when a preset is added or removed: the folder is embedded whole, and Cargo watches only known files.

fn main() {
    println!("cargo::rerun-if-changed=src/presets");
}
