//! What the stand-in driver has and no driver: its records, its injected failures, its checks for
//! errors and its settings. Other suites rely on them.

mod record;
mod seeded;
mod settings;
mod strict;
