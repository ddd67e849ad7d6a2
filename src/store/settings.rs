//! The versions of the settings, as they are kept.
//!
//! Puts a version that is new, and reads; nothing here changes or deletes one.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use tokio::time::Instant;

use super::items::{SETTINGS, integer, string, version_from, version_item, version_key};
use super::{Asking, Step, Store, StoreError};
use crate::settings::Version;

/// Most versions of one page of the history.
const PAGE: i32 = 20;

/// What became of a version that was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutSettings {
    /// It is there, and the newest.
    Done,
    /// Its number was taken meanwhile, by this one.
    Taken(Box<Version>),
}

impl Store {
    /// The newest version, or the newest that is older than one; `None` where there is none. A row whose number is not a whole
    /// one, which only a hand can put, is no version.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn newest_settings(&self, before: Option<u64>, deadline: Instant) -> Result<Option<Version>, StoreError> {
        let subject =
            before.map_or_else(|| "the newest version".to_owned(), |before| format!("what came before {before}"));
        let asking = Asking { step: Step::ReadSettings, subject: &subject, deadline };
        let mut from = None;
        loop {
            let request = self.versions_query(before).limit(1).set_exclusive_start_key(from).send();
            let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
            match (output.items().first().map(version_from), output.last_evaluated_key()) {
                (Some(Ok(version)), _) => return Ok(Some(version)),
                (_, None) => return Ok(None),
                (_, Some(key)) => from = Some(key.clone()),
            }
        }
    }

    /// One version; `None` where there is none of that number.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn settings(&self, number: u64, deadline: Instant) -> Result<Option<Version>, StoreError> {
        let subject = format!("version {number}");
        let asking = Asking { step: Step::ReadSettings, subject: &subject, deadline };
        let request = self.client.get_item().table_name(&self.tables.settings).consistent_read(true);
        let request = request.set_key(Some(version_key(number))).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        let version = output.item().map(version_from).transpose();
        version.map_err(|problem| asking.failed(problem))
    }

    /// A page of versions, the newest first, all older than one where that is given; empty after the first version.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn settings_history(&self, before: Option<u64>, deadline: Instant) -> Result<Vec<Version>, StoreError> {
        let asking = Asking { step: Step::ReadSettings, subject: "the history", deadline };
        let request = self.versions_query(before).limit(PAGE).send();
        let output = asking.send(request).await?.map_err(|error| asking.sdk(&error))?;
        Ok(output.items().iter().filter_map(|item| version_from(item).ok()).collect())
    }

    /// Puts a version whose number is new: whoever puts the same number at the same time is told so, and only one is kept.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: whether the version is there is then unknown, and putting the same again settles that.
    pub async fn put_settings(&self, version: &Version, deadline: Instant) -> Result<PutSettings, StoreError> {
        let subject = format!("version {}", version.number);
        let asking = Asking { step: Step::PutSettings, subject: &subject, deadline };
        let request = self.client.put_item().table_name(&self.tables.settings).set_item(Some(version_item(version)));
        let request = request
            .condition_expression("attribute_not_exists(version)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let error = match asking.send(request.send()).await? {
            Ok(_) => return Ok(PutSettings::Done),
            Err(error) => error,
        };
        let taken = match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(failed)) => failed.item(),
            _ => None,
        };
        let Some(taken) = taken else { return Err(asking.sdk(&error)) };
        // An attempt whose reply was lost finds what it put itself.
        if *taken == version_item(version) {
            return Ok(PutSettings::Done);
        }
        let taken = version_from(taken).map_err(|problem| asking.failed(problem))?;
        Ok(PutSettings::Taken(Box::new(taken)))
    }

    fn versions_query(&self, before: Option<u64>) -> QueryFluentBuilder {
        let query = self.client.query().table_name(&self.tables.settings).consistent_read(true);
        let query = query.scan_index_forward(false).expression_attribute_names("#name", "name");
        let query = query.expression_attribute_values(":name", string(SETTINGS));
        match before {
            None => query.key_condition_expression("#name = :name"),
            Some(before) => query
                .key_condition_expression("#name = :name AND version < :before")
                .expression_attribute_values(":before", integer(before)),
        }
    }
}
