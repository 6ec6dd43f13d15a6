//! Reading reports. A report has up to a million records and more, so they are read one after the
//! other and kept only for what shows them.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use resident_documents::Document;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, IntoDeserializer, MapAccess, Visitor,
};
use serde_json::error::Category;

/// The version that this program reads.
const VERSION: u64 = 1;

/// How much of a file is read at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// Whether the records of a report are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Records {
    Kept,
    Skipped,
}

/// Whether a path stands for standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a report from a file, or from standard input if its name is `-`. The message of an error
/// names the file.
pub(crate) fn read(path: &Path, records: Records) -> Result<Document, String> {
    let named = |error: String| format!("{}: {error}", name(path));
    parse(open(path)?, records).map_err(named)
}

/// A file as messages name it.
pub(crate) fn name(path: &Path) -> String {
    if is_standard_input(path) {
        return "standard input".to_owned();
    }
    path.display().to_string()
}

/// Opens a file, or standard input.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    if is_standard_input(path) {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(file))
}

/// Reads a report from its text.
pub(crate) fn parse(text: impl Read, records: Records) -> Result<Document, String> {
    let reader = BufReader::with_capacity(BUFFER_BYTES, text);
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let version = Cell::new(None);
    let document = Report { version: &version, records }.deserialize(&mut deserializer);
    let document = document.and_then(|document| deserializer.end().map(|()| document));
    match (document, version.get()) {
        (_, Some(other)) if other != VERSION => {
            Err(format!("a report of version {other}; this program reads version {VERSION}"))
        }
        (Ok(_), None) => Err("no audit report: it has no \"version\"".to_owned()),
        (Ok(mut document), Some(_)) => {
            document.version = 1;
            Ok(document)
        }
        (Err(error), _) => Err(refusal(&error)),
    }
}

fn refusal(error: &serde_json::Error) -> String {
    let problem = match error.classify() {
        Category::Eof => "the report is cut off",
        Category::Syntax => "not JSON",
        Category::Data => "no audit report",
        Category::Io => "it cannot be read",
    };
    format!("{problem}: {error}")
}

/// What reads a report, and notes its version as soon as it is known.
struct Report<'a> {
    version: &'a Cell<Option<u64>>,
    records: Records,
}

impl<'de> DeserializeSeed<'de> for Report<'_> {
    type Value = Document;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Document, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Report<'_> {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an audit report")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Document, M::Error> {
        serde::Deserialize::deserialize(MapAccessDeserializer::new(Members { map, report: self }))
    }
}

/// The members of a report, without records if they are skipped.
struct Members<'a, M> {
    map: M,
    report: Report<'a>,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Members<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            match &*key {
                "records" if self.report.records == Records::Skipped => {
                    self.map.next_value::<IgnoredAny>()?;
                }
                "version" => self.note_version()?,
                _ => return seed.deserialize(key.into_deserializer()).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

impl<'de, M: MapAccess<'de>> Members<'_, M> {
    /// Reads the version. Another than that of this program ends the reading.
    fn note_version(&mut self) -> Result<(), M::Error> {
        let version = self.map.next_value()?;
        self.report.version.set(Some(version));
        if version == VERSION { Ok(()) } else { Err(M::Error::custom("another version")) }
    }
}
