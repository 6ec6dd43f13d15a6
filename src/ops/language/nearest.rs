//! The name that is most likely meant by an unknown one.

/// Of some names, the one that differs least from `name`: in at most two letters, and not in all.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distances = names.map(|known| (distance(name, known), known));
    let near = distances.filter(|(distance, _)| *distance <= 2 && *distance < name.len());
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// How many letters are to be added, left out or replaced (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (line, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[row.len() - 1]
}
