#![doc = include_str!("../README.md")]

// Words.
pub mod id; // ids that cannot be mixed up
pub mod money; // exact amounts of coins

// Decisions: pure, without AWS, clock or environment.
pub mod ledger; // entries, outcomes, cases, and the judgement of stored against new
pub mod event; // a function URL's event as a request, an answer as its response
pub mod fields; // the named fields of a request: query, form or JSON
pub mod signature; // the closed set of signing recipes
pub mod preset; // a network as data
pub mod gate; // verified before anything is read
pub mod settings; // which networks are enabled, and what is peculiar to a deployment
pub mod offerwall; // signed postback -> claim -> postings -> answer
pub mod wallet; // signed call of a game -> ask -> posting -> one answer for ever
pub mod cashier; // players' accounts: opened, closed, and their own money in and out
pub mod cases; // what a person can do about a case
pub mod sample; // a signed example of what a network sends
pub mod metrics; // the line of a call, and what CloudWatch counts in it
#[cfg(feature = "operator")]
pub mod books; // what entries add up to, and what does not agree with them
#[cfg(feature = "operator")]
pub mod report; // a month as one page of HTML
#[cfg(feature = "operator")]
pub mod reconcile; // a network's statement against our entries

// The edge: each of these touches the world in one way.
pub mod store; // the only file that knows DynamoDB's items and expressions
pub mod aws; // credentials, endpoint, roots and time limits of the SDK clients
pub mod tally; // how many requests a call made
pub mod secrets; // the networks' secrets, and their rotation
pub mod config; // the only reader of the environment
pub mod in_force; // which settings are in force, and when newer ones are
pub mod handler; // the one control flow: read, plan, post, answer, log
pub mod workers; // what nobody calls for: due holds are released
pub mod function; // the life of a Lambda function
pub mod log; // structured logs

#[cfg(feature = "operator")]
pub mod terminal; // what command lines have in common: arguments, what is printed, exit codes, tables
#[cfg(feature = "operator")]
pub mod operator; // the commands of the people behind the endpoint
#[cfg(feature = "local")]
pub mod local; // the same function on one machine, over an embedded DynamoDB
