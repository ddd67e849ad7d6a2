//! The cases: opened, found, counted and closed.
//!
//! A case about an entry is written in that entry's transaction, see [`Store::post`]; here are those that belong to none. A
//! case is never deleted, and what it was opened for never changes.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::{KeysAndAttributes, Select};
use tokio::time::Instant;

use super::items::{CLOSED, Item, OPEN, case_from, case_item, string, time};
use super::{Asking, Step, Store, StoreError, built};
use crate::id::{Network, TransId};
use crate::ledger::{Case, CaseKind, CaseRow, Closing, Status};
use std::collections::HashMap;

/// The index that holds the open cases and no others.
const INDEX: &str = "open";

/// What of a conversation cases are about.
const ABOUT: [Status; 4] = [Status::Credit, Status::Reversal, Status::Operation, Status::Rollback];

// So many items are read with one request at most.
const _: () = assert!(CaseKind::ALL.len() * ABOUT.len() <= 100);

/// Whether a case was opened now or is open, or closed, already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// It was not there.
    New,
    /// It was there, open or closed, and stays as it was.
    Known,
}

/// Whether a case was closed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closes {
    /// It was open.
    Now,
    /// It was closed already, or is not there.
    NotOpen,
}

impl Store {
    /// Opens a case that belongs to no transaction, once: what is known, open or closed, stays as it is.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: whether the case is open is then unknown, and opening it again settles that.
    pub async fn open(&self, case: &Case, deadline: Instant) -> Result<Opened, StoreError> {
        let id = case.id();
        let asking = Asking { step: Step::OpenCase, subject: &id, deadline };
        let request = self.client.put_item().table_name(&self.tables.cases).set_item(Some(case_item(case)));
        let request = request.condition_expression("attribute_not_exists(case_id)").send();
        match asking.send(request).await? {
            Ok(_) => Ok(Opened::New),
            Err(SdkError::ServiceError(service)) if service.err().is_conditional_check_failed_exception() => {
                Ok(Opened::Known)
            }
            Err(error) => Err(asking.sdk(&error)),
        }
    }

    /// Closes a case without moving anything.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: whether the case is closed is then unknown, and looking at it settles that.
    pub async fn close(&self, closing: &Closing, deadline: Instant) -> Result<Closes, StoreError> {
        let asking = Asking { step: Step::CloseCase, subject: &closing.case_id, deadline };
        let request = self.client.update_item().table_name(&self.tables.cases);
        let request = request.key("case_id", string(&closing.case_id)).update_expression(CLOSE);
        let request = request.condition_expression(IS_OPEN).set_expression_attribute_names(Some(close_names()));
        let request = request.set_expression_attribute_values(Some(close_values(closing))).send();
        match asking.send(request).await? {
            Ok(_) => Ok(Closes::Now),
            Err(SdkError::ServiceError(service)) if service.err().is_conditional_check_failed_exception() => {
                Ok(Closes::NotOpen)
            }
            Err(error) => Err(asking.sdk(&error)),
        }
    }

    /// The case with this id, open or closed; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds a case that does not read.
    pub async fn case(&self, case_id: &str, deadline: Instant) -> Result<Option<CaseRow>, StoreError> {
        let asking = Asking { step: Step::ReadCases, subject: case_id, deadline };
        let request = self.client.get_item().table_name(&self.tables.cases).consistent_read(true);
        let output = asking.send(request.key("case_id", string(case_id)).send()).await?;
        let item = output.map_err(|error| asking.sdk(&error))?.item;
        item.map(|item| case_from(&item).map_err(|problem| asking.failed(problem))).transpose()
    }

    /// The cases about the entries of a conversation, open or closed, by id. Their ids are made of what they are about, so
    /// that those that could be are asked for.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer, refuses, or holds a case that does not read.
    pub async fn cases_of(&self, trans_id: &TransId, deadline: Instant) -> Result<Vec<CaseRow>, StoreError> {
        let asking = Asking { step: Step::ReadCases, subject: trans_id.as_str(), deadline };
        let kinds = CaseKind::ALL.into_iter().filter(|kind| *kind != CaseKind::SettingsBroken);
        let ids = kinds.flat_map(|kind| ABOUT.map(|status| kind.id_of(trans_id, status)));
        let keys = ids.map(|id| Item::from([("case_id".to_owned(), string(id))])).collect();
        let keys = built(KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build());
        let mut asked = Some(HashMap::from([(self.tables.cases.clone(), keys)]));
        let mut rows = Vec::new();
        // What DynamoDB left out for its size, or for throttling, is asked for again.
        while let Some(keys) = asked.filter(|asked| !asked.is_empty()) {
            let output = asking.send(self.client.batch_get_item().set_request_items(Some(keys)).send()).await?;
            let output = output.map_err(|error| asking.sdk(&error))?;
            for item in output.responses.into_iter().flat_map(HashMap::into_values).flatten() {
                rows.push(case_from(&item).map_err(|problem| asking.failed(problem))?);
            }
            asked = output.unprocessed_keys;
        }
        rows.sort_by(|one, other| one.case_id.cmp(&other.case_id));
        Ok(rows)
    }

    /// The open cases, of all networks or of one, the longest open first. A row that does not read is what is wrong with it:
    /// the others must not be hidden by it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn open_cases(
        &self,
        network: Option<&Network>,
        deadline: Instant,
    ) -> Result<Vec<Result<CaseRow, String>>, StoreError> {
        let asking =
            Asking { step: Step::ReadCases, subject: network.map_or("all networks", Network::as_str), deadline };
        let table = &self.tables.cases;
        let items = match network {
            Some(network) => {
                let query = self.client.query().table_name(table).index_name(INDEX);
                let query = query.key_condition_expression("#open = :open").expression_attribute_names("#open", "open");
                let query = query.expression_attribute_values(":open", string(network.as_str()));
                asking
                    .send(query.into_paginator().items().send().try_collect())
                    .await?
                    .map_err(|error| asking.sdk(&error))
            }
            None => {
                let scan = self.client.scan().table_name(table).index_name(INDEX);
                asking
                    .send(scan.into_paginator().items().send().try_collect())
                    .await?
                    .map_err(|error| asking.sdk(&error))
            }
        };
        let mut rows: Vec<_> = items?.iter().map(case_from).collect();
        rows.sort_by_key(|row: &Result<CaseRow, _>| {
            row.as_ref().map(|row| (row.case.opened_at, row.case_id.clone())).ok()
        });
        Ok(rows)
    }

    /// How many cases are open.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when DynamoDB does not answer or refuses.
    pub async fn count_open_cases(&self, deadline: Instant) -> Result<u64, StoreError> {
        let asking = Asking { step: Step::ReadCases, subject: "all networks", deadline };
        let scan = self.client.scan().table_name(&self.tables.cases).index_name(INDEX).select(Select::Count);
        let mut pages = scan.into_paginator().send();
        let mut count = 0;
        while let Some(page) =
            tokio::time::timeout_at(deadline, pages.next()).await.map_err(|_| asking.out_of_time())?
        {
            count += u64::try_from(page.map_err(|error| asking.sdk(&error))?.count()).unwrap_or_default();
        }
        Ok(count)
    }
}

/// How an open case becomes a closed one, which is no longer in the index of open cases.
pub(super) const CLOSE: &str = "SET #state = :closed, closed_at = :at, closed_by = :by, reason = :reason, \
                                resolution = :resolution REMOVE #open";

/// Only what is open can be closed.
pub(super) const IS_OPEN: &str = "#state = :open";

/// The names in [`CLOSE`] and [`IS_OPEN`].
pub(super) fn close_names() -> HashMap<String, String> {
    [("#state", "state"), ("#open", "open")].map(|(name, attribute)| (name.into(), attribute.into())).into()
}

/// The values in [`CLOSE`] and [`IS_OPEN`].
pub(super) fn close_values(closing: &Closing) -> Item {
    let values = [
        (":open", string(OPEN)),
        (":closed", string(CLOSED)),
        (":at", string(time(closing.closed_at))),
        (":by", string(&closing.decision.by)),
        (":reason", string(&closing.decision.reason)),
        (":resolution", string(closing.resolution.to_string())),
    ];
    values.map(|(name, value)| (name.into(), value)).into()
}
