//! The commands about the books: one conversion, one user, a day, a month, an export, what does not agree.
//!
//! Only reads. Every number says where it comes from.
