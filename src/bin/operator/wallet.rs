//! The commands about a wallet and its players.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use postback::cashier::Action;
use postback::operator::cashier::{self, Whose};
use postback::operator::{CannotRun, wallet};
use postback::terminal::Reply;

use crate::{Decides, Everywhere};

#[derive(Subcommand)]
pub enum Command {
    /// Everything about one key of a wallet: what was asked for and answered, its rollbacks, its round, its cases
    Wallet {
        /// The key as the caller sent it, or our transaction id
        key: String,
        /// The wallet's network, where there is more than one
        #[arg(long)]
        network: Option<String>,
    },
    /// A round of a game: every player's part, and every entry in the order of time
    Round {
        /// The round, as the caller named it
        id: String,
        /// The wallet's network, where there is more than one
        #[arg(long)]
        network: Option<String>,
    },
    /// A player: account, newest entries and the cashier's; or what is done about the account
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Player(PlayerArguments),
}

#[derive(Args)]
pub struct PlayerArguments {
    /// The player, as the wallet's caller names them
    #[arg(required = true)]
    id: Option<String>,
    /// How many entries
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(subcommand)]
    action: Option<Player>,
}

#[derive(Subcommand)]
enum Player {
    /// Open an account, or open a closed one again
    Open(About),
    /// Close an account; nothing may be left in it
    Close(About),
    /// Money of the player's own comes in
    Deposit(Payment),
    /// Money of the player's own goes out
    Withdraw(Payment),
}

#[derive(Args)]
struct About {
    /// The player, as the wallet's caller names them
    player: String,
    /// The currency of the account; else the wallet's, else CURRENCY
    #[arg(long)]
    currency: Option<String>,
    #[command(flatten)]
    decides: Decides,
}

#[derive(Args)]
struct Payment {
    /// The player, as the wallet's caller names them
    player: String,
    /// The amount, above zero
    #[arg(allow_negative_numbers = true)]
    amount: String,
    /// The payment's own reference: the same one again moves nothing
    #[arg(long)]
    reference: String,
    /// The currency of the account; else the wallet's, else CURRENCY
    #[arg(long)]
    currency: Option<String>,
    #[command(flatten)]
    decides: Decides,
}

pub async fn run(command: Command, everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    match command {
        Command::Wallet { key, network } => wallet::key(&everywhere.ledger()?, &key, network.as_deref()).await,
        Command::Round { id, network } => wallet::round(&everywhere.ledger()?, &id, network.as_deref()).await,
        Command::Player(PlayerArguments { action: None, id, limit }) => {
            wallet::player(&everywhere.ledger()?, &id.unwrap_or_default(), limit).await
        }
        Command::Player(PlayerArguments { action: Some(action), .. }) => match action {
            Player::Open(about) => account(Action::Open, &about, everywhere).await,
            Player::Close(about) => account(Action::Close, &about, everywhere).await,
            Player::Deposit(payment) => pay(Action::Deposit, &payment, everywhere).await,
            Player::Withdraw(payment) => pay(Action::Withdraw, &payment, everywhere).await,
        },
    }
}

async fn account(action: Action, about: &About, everywhere: &Everywhere) -> Result<Reply, CannotRun> {
    let About { player, currency, decides } = about;
    let (decision, now) = (decides.decision()?, Timestamp::now());
    let reference = cashier::reference(action, now, fastrand::u64(..));
    let whose = Whose { player, currency: currency.as_deref() };
    cashier::act(&everywhere.ledger()?, action, whose, &reference, decision, now).await
}

async fn pay(
    action: impl FnOnce(postback::money::Amount) -> Action,
    payment: &Payment,
    everywhere: &Everywhere,
) -> Result<Reply, CannotRun> {
    let Payment { player, amount, reference, currency, decides } = payment;
    let (decision, action) = (decides.decision()?, action(cashier::amount(amount)?));
    let whose = Whose { player, currency: currency.as_deref() };
    cashier::act(&everywhere.ledger()?, action, whose, reference, decision, Timestamp::now()).await
}
