//! The commands about cases: what a person must work, and what came of it.
