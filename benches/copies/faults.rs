//! The page faults of this process.

/// The page faults so far that needed no input from a disk, of all threads; 0 where the system does
/// not report them.
pub(crate) fn page_faults() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in parentheses, which may contain spaces. The field
    // `minflt` is the eighth after it.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().nth(7).and_then(|field| field.parse().ok()).unwrap_or(0)
}
