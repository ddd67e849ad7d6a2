//! The one integration test binary: the real handler and the real store on a real DynamoDB API.
//!
//! By default each test has its own embedded DynamoDB; with `POSTBACK_TEST_ENDPOINT=http://host:port` all run, in tables of
//! their own, on the one given there. Every story ends by checking that the books balance, because [`world::check`] does.

mod faults; // a DynamoDB that misbehaves on demand
mod model; // what should be true, in a few lines: the oracle
mod runtime_api; // Lambda's runtime API, for driving the real release binary
mod world; // one deployment, its callers, and its books

mod costs; // requests and capacity of every path
mod finance; // the books as people read them
mod exactly_once; // the source document's checklist and its wrong ways, races, reversals
mod holds; // held coins: released, taken back, raced, killed, many of them
mod decisions; // caps, users who must be known, losses that are ours, and what people do about cases
mod metrics; // the line of a call, and what CloudWatch counts in it
mod local; // local mode's server as a process
mod networks; // every network that is shipped, played from its event files
mod offerwall; // byte-exact answers, and any garbage
mod pitfalls; // every way in which postbacks were got wrong before
mod process; // the release binaries, killed at random points
mod reconcile; // a network's statement against entries
mod recipes; // every way to sign, each network a TOML string
mod vectors; // signatures that networks published
mod rotation; // secrets that change while the function runs
mod settings; // versions that come into force, break, race and are taken back
mod simulation; // random traffic with faults against the model
mod template; // template, binaries, variables, events and README agree; the house's rules hold
mod transcripts; // sessions on the command line with their exact output
mod wallet_operator; // keys, rounds, players and the cashier as people see and work them
mod wallet; // a game aggregator's calls: byte-exact answers, repeats, rollbacks, doubtful wins
mod transport; // lost replies, resets, stalls, contention, under the real store
