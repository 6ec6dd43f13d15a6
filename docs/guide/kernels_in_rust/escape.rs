// What host and GPU compute alike. It needs no standard library.

/// The steps after which a point of the plane leaves the circle of radius 2 under `z = z² + c`, at
/// most `steps_max`.
pub(crate) fn escape_steps(re: f32, im: f32, steps_max: u32) -> u32 {
    let (mut x, mut y) = (0.0_f32, 0.0_f32);
    for step in 0..steps_max {
        if x * x + y * y > 4.0 {
            return step;
        }
        (x, y) = (x * x - y * y + re, 2.0 * x * y + im);
    }
    steps_max
}
