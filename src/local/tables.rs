//! The tables as `template.yaml` defines them, made at any endpoint: there is no second definition to keep in step.
//!
//! Makes what is missing and leaves what exists. Never changes and never deletes a table.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::client::Waiters;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeDefinition, GlobalSecondaryIndex, KeySchemaElement, Projection};
use serde::Deserialize;

use crate::aws::chain;
use crate::store::Tables;

const TEMPLATE: &str = include_str!("../../template.yaml");

/// The longest that DynamoDB may take to make a table.
const MAKING_MAX: Duration = Duration::from_secs(60);

/// Why a table could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the table {name} cannot be made: {problem}")]
pub struct TableError {
    name: String,
    problem: String,
}

/// Makes the tables under the given names, and waits until each can be used.
///
/// # Errors
///
/// [`TableError`] names the table and what DynamoDB says.
pub async fn create_tables(client: &Client, tables: &Tables) -> Result<(), TableError> {
    let resources = resources();
    for (name, table) in [
        (&tables.transactions, resources.transactions.properties),
        (&tables.accounts, resources.accounts.properties),
        (&tables.holds, resources.holds.properties),
        (&tables.rounds, resources.rounds.properties),
        (&tables.cases, resources.cases.properties),
        (&tables.settings, resources.settings.properties),
    ] {
        let fail = |problem: String| TableError { name: name.clone(), problem };
        let made = table.request(client).table_name(name).send().await;
        let exists = |error: &SdkError<CreateTableError>| {
            error.as_service_error().is_some_and(CreateTableError::is_resource_in_use_exception)
        };
        if let Err(error) = made
            && !exists(&error)
        {
            return Err(fail(chain(&error)));
        }
        let wait = client.wait_until_table_exists().table_name(name).wait(MAKING_MAX).await;
        wait.map_err(|error| fail(chain(&error)))?;
    }
    Ok(())
}

/// What a template says about our tables. The rest of it, such as what protects a real table from deletion, is not looked at.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Template {
    resources: Resources,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resources {
    transactions: Resource,
    accounts: Resource,
    holds: Resource,
    rounds: Resource,
    cases: Resource,
    settings: Resource,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resource {
    properties: Table,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Table {
    billing_mode: String,
    attribute_definitions: Vec<Attribute>,
    key_schema: Vec<Key>,
    #[serde(default)]
    global_secondary_indexes: Vec<Index>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attribute {
    attribute_name: String,
    attribute_type: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Key {
    attribute_name: String,
    key_type: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Index {
    index_name: String,
    key_schema: Vec<Key>,
    projection: Projected,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Projected {
    projection_type: String,
}

/// The template is compiled in, so a test holds that it reads.
fn resources() -> Resources {
    let template: Template = serde_saphyr::from_str(TEMPLATE).expect("template.yaml reads");
    template.resources
}

/// Every required member of an SDK type is set where it is built.
macro_rules! built {
    ($builder:expr) => {
        $builder.build().expect("every required member is set")
    };
}

impl Table {
    fn request(&self, client: &Client) -> CreateTableFluentBuilder {
        let request = client
            .create_table()
            .billing_mode(self.billing_mode.as_str().into())
            .set_key_schema(Some(keys(&self.key_schema)));
        let request = self.attribute_definitions.iter().fold(request, |request, attribute| {
            request.attribute_definitions(built!(
                AttributeDefinition::builder()
                    .attribute_name(&attribute.attribute_name)
                    .attribute_type(attribute.attribute_type.as_str().into())
            ))
        });
        self.global_secondary_indexes.iter().fold(request, |request, index| {
            let projection = Projection::builder().projection_type(index.projection.projection_type.as_str().into());
            request.global_secondary_indexes(built!(
                GlobalSecondaryIndex::builder()
                    .index_name(&index.index_name)
                    .set_key_schema(Some(keys(&index.key_schema)))
                    .projection(projection.build())
            ))
        })
    }
}

fn keys(keys: &[Key]) -> Vec<KeySchemaElement> {
    keys.iter()
        .map(|key| {
            built!(
                KeySchemaElement::builder().attribute_name(&key.attribute_name).key_type(key.key_type.as_str().into())
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `partition, sort` of each key.
    fn key(keys: &[Key]) -> String {
        let names: Vec<_> = keys
            .iter()
            .zip(["HASH", "RANGE"])
            .map(|(key, expected)| {
                assert_eq!(key.key_type, expected);
                key.attribute_name.as_str()
            })
            .collect();
        names.join(", ")
    }

    #[test]
    fn the_template_reads_with_all_its_tags_and_gives_the_tables_and_their_keys() {
        let Resources { transactions, accounts, holds, rounds, cases, settings } = resources();
        assert_eq!(key(&transactions.properties.key_schema), "trans_id, status");
        assert_eq!(key(&accounts.properties.key_schema), "user_id, currency");
        assert_eq!(key(&holds.properties.key_schema), "bucket, due");
        assert_eq!(key(&rounds.properties.key_schema), "round_id, user_id");
        assert_eq!(key(&cases.properties.key_schema), "case_id");
        assert_eq!(key(&settings.properties.key_schema), "name, version");
        let indexes = |table: Resource| -> Vec<_> {
            let indexes = table.properties.global_secondary_indexes.into_iter();
            indexes.map(|index| format!("{}: {}", index.index_name, key(&index.key_schema))).collect()
        };
        let of_entries = ["by_user: user_id, received_at", "by_day: day, received_at", "by_round: round, received_at"];
        assert_eq!(indexes(transactions), of_entries);
        assert_eq!(indexes(cases), ["open: open, opened_at"]);
    }
}
