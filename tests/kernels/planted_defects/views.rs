//! Views: tables with a shape and strides.

#[test]
fn every_defect_with_views_is_found() {
    crate::check(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== row_and_column(view in out) float|byte <<<4, 64>>> OutOfBounds, OutOfBounds, OutOfBounds
int row = i / 16, column = i % 16;
out(row, column) = in($1{row + 1}{row}, $2{column + 1}3{column - 1}{column});
== swapped_axes(view in out) short <<<2, 64>>> OutOfBounds, OutOfBounds
int row = i / 16, column = i % 16;
out($1{column}{row}, $1{row}{column}) = in($2{column}{row}, $2{row}{column});
== written_column(part in out) half <<<2, 64>>> OutOfBounds, OutOfBounds
int row = i / 16, column = i % 16;
out(row, $1{column * 2}{column}) = in($2{row - 1}{row}, column);
== bare_pointer_of_a_part(part in io) int <<<2, 64>>> OutOfBounds, OutOfBounds
int row = i / 16, column = i % 16;
T *data = &io(row, 0);
data[$1{column}2{2 * column + 1}{2 * column}] += in(row, column);
== length_of_the_wrong_axis(view in out) float <<<1, 64>>> OutOfBounds, Unwritten
for (int column = t; column < in.shape[$1{0}{1}] $1{* 8}{}; column += 64)
    for (int row = 0; row < in.shape[$2{1}{0}] $2{- 13}{}; ++row)
        out(row, column) = in(row, column);
== rows_of_blocks(view in io) double <<<8, 16>>> Race, Race
io($1{b / 2}{b}, $2{t ^ 1}{t}) += in(b, t) $2{+ io(b, t)}{};
== table_transposed_in_place(view io) float <<<1, 16x16>>> Race
int x = threadIdx.x, y = threadIdx.y;
T other = io(x, y);
$1{}{__syncthreads();}
io(y, x) = other;
== diagonal(part in io) float <<<4, 64>>> OutOfBounds, Race
if (i < 17 $1{}{- 1}) io(i, i) += in(i, i);
if (i > 100 && i < 116) io((i - 101) $2{/ 2}{}, ((i - 101) $2{/ 2}{}) ^ 1) += T(1) $2{+ i}{};
== sums_of_rows(view in io) int <<<8, 16>>> Race
if ($1{true}{t == 0}) {
    T sum = 0;
    for (int column = 0; column < in.shape[1]; ++column) sum += in(b, column);
    io(b, 0) = io(b, 0) + sum;
}
== shared_row(view in out) float <<<8, 16>>> Race, OutOfBounds, Uninitialised
__shared__ T row[16];
if ($3{t != 0}{true}) row[t] = in(b, t);
$1{}{__syncthreads();}
out(b, t) = row[$2{16 - t}{15 - t}];
== nth_element(view in out) byte <<<2, 64>>> OutOfBounds, OutOfBounds
out.at(i) = in.at($1{i + 1}2{i + in.size()}{i});
"#;
