//! Registers the kernels of the benchmarks as host functions with the stand-in driver, so that the
//! benchmarks run without a GPU.
//!
//! Such a run checks that a row works and that its results are right. It measures nothing.

use resident::ndarray::{Array, ArrayD, ArrayView2, ArrayViewMut2, Dimension, Ix2, Ix3, IxDyn};
use resident_stand_in::{
    self as driver, Access, Launch, Length, Parameter, Settings, View, register,
};

use resident_examples::pipeline::bodies;

const READ: Parameter = pointer(Access::Read);
const WRITE: Parameter = pointer(Access::Write);
const BOTH: Parameter = pointer(Access::ReadWrite);
const LEN: Parameter = Parameter::Scalar { len_bytes: 8 };
const FLOAT: Parameter = Parameter::Scalar { len_bytes: 4 };

const fn pointer(access: Access) -> Parameter {
    Parameter::Pointer { access, length: Length::ToEnd }
}

/// Loads the stand-in driver and compiler, and registers the kernels.
///
/// # Errors
///
/// If the shared objects of the driver and compiler are not where cargo or the bundle puts them.
pub fn load(settings: Settings) -> Result<(), String> {
    driver::load(settings)?;
    resident_stand_in_nvrtc::load()?;
    register_touches();
    register_vectors();
    register_conjugate_gradient();
    register_pictures();
    Ok(())
}

/// The number of hazards since the last call. Also clears the record of calls, which would
/// otherwise grow without end.
pub fn take_hazards() -> usize {
    driver::take_calls();
    driver::take_hazards().len()
}

fn read<'a, T: Copy>(launch: &'a Launch<'_>, index: usize) -> &'a [T] {
    // SAFETY: elements are numbers. The kernel is registered as reading the memory, and the
    // stand-in driver checks that no unordered work writes it.
    unsafe { launch.slice(index) }
}

#[expect(clippy::mut_from_ref, reason = "each function takes each of its parameters once")]
fn written<'a, T: Copy>(launch: &'a Launch<'_>, index: usize) -> &'a mut [T] {
    // SAFETY: as for `read`; each function takes each parameter once, and the parameters do not
    // overlap.
    unsafe { launch.slice_mut(index) }
}

fn register_touches() {
    for arrays in [1, 4, 8] {
        let mut parameters = vec![READ; arrays];
        parameters[arrays - 1] = BOTH;
        register(&format!("touch{arrays}"), &parameters, move |launch| {
            let output = written::<f32>(launch, arrays - 1);
            for (index, output) in output.iter_mut().enumerate().take(launch.block()[0] as usize) {
                *output += 1.0
                    + (0..arrays - 1).map(|input| read::<f32>(launch, input)[index]).sum::<f32>();
            }
            Ok(())
        });
    }
}

fn register_vectors() {
    register("affine", &[FLOAT, FLOAT, READ, WRITE, LEN], |launch| {
        let (factor, offset): (f32, f32) = (launch.scalar(0), launch.scalar(1));
        let (x, y) = (read::<f32>(launch, 2), written::<f32>(launch, 3));
        x.iter()
            .zip(y)
            .take(launch.scalar::<u64>(4) as usize)
            .for_each(|(x, y)| *y = factor * x + offset);
        Ok(())
    });
    register("partial_sum", &[READ, WRITE, LEN], |launch| {
        let len = launch.scalar::<u64>(2) as usize;
        fill_parts(&read::<f32>(launch, 0)[..len], written::<f32>(launch, 1));
        Ok(())
    });
}

/// Writes the whole sum as the first partial sum. The order of the additions differs from the
/// GPU's.
fn fill_parts<T: Copy + Default + std::iter::Sum<T>>(values: &[T], parts: &mut [T]) {
    parts.fill(T::default());
    parts[0] = values.iter().copied().sum();
}

fn register_conjugate_gradient() {
    register("laplace", &[READ, WRITE, LEN], |launch| {
        laplace(read(launch, 0), written(launch, 1), launch.scalar::<u64>(2) as usize);
        Ok(())
    });
    register("partial_dot", &[READ, READ, WRITE, LEN], |launch| {
        let len = launch.scalar::<u64>(3) as usize;
        let products: Vec<f64> = read::<f64>(launch, 0)
            .iter()
            .zip(read::<f64>(launch, 1))
            .take(len)
            .map(|(a, b)| a * b)
            .collect();
        fill_parts(&products, written(launch, 2));
        Ok(())
    });
    register("finish_dot", &[READ, WRITE], |launch| {
        written::<f64>(launch, 1)[0] =
            read::<f64>(launch, 0)[..launch.block()[0] as usize].iter().sum();
        Ok(())
    });
    register("advance", &[BOTH, BOTH, READ, READ, READ, READ, LEN], |launch| {
        let alpha = read::<f64>(launch, 4)[0] / read::<f64>(launch, 5)[0];
        let (x, r, p, ap) = (
            written::<f64>(launch, 0),
            written::<f64>(launch, 1),
            read::<f64>(launch, 2),
            read::<f64>(launch, 3),
        );
        for index in 0..launch.scalar::<u64>(6) as usize {
            x[index] += alpha * p[index];
            r[index] -= alpha * ap[index];
        }
        Ok(())
    });
    register("redirect", &[BOTH, READ, READ, READ, LEN], |launch| {
        let beta = read::<f64>(launch, 2)[0] / read::<f64>(launch, 3)[0];
        let (p, r) = (written::<f64>(launch, 0), read::<f64>(launch, 1));
        p.iter_mut()
            .zip(r)
            .take(launch.scalar::<u64>(4) as usize)
            .for_each(|(p, r)| *p = r + beta * *p);
        Ok(())
    });
}

fn laplace(p: &[f64], ap: &mut [f64], side: usize) {
    for index in 0..side * side {
        let (row, column) = (index / side, index % side);
        let beside = [
            (row > 0, index.wrapping_sub(side)),
            (row + 1 < side, index + side),
            (column > 0, index.wrapping_sub(1)),
            (column + 1 < side, index + 1),
        ];
        ap[index] = 4.0 * p[index]
            - beside
                .iter()
                .filter(|(is_inside, _)| *is_inside)
                .map(|(_, index)| p[*index])
                .sum::<f64>();
    }
}

/// Copies a view into an array.
fn array<T: Copy, D: Dimension>(view: &View) -> Array<T, D> {
    let shape: Vec<usize> = view.shape.iter().map(|extent| *extent as usize).collect();
    let all = ArrayD::from_shape_vec(
        IxDyn(&shape),
        (0..view.len()).map(|index| view.get(index)).collect(),
    );
    all.ok()
        .and_then(|all| all.into_dimensionality().ok())
        .expect("a view of as many elements and dimensions as its shape says")
}

fn put<T: Copy, D: Dimension>(view: &View, array: &Array<T, D>) {
    array.iter().enumerate().for_each(|(index, value)| view.set(index, *value));
}

const fn picture(dimensions: u32, element_bytes: u32, access: Access) -> Parameter {
    Parameter::View { dimensions, element_bytes, access }
}

/// Registers the kernels of the edge detector with their host bodies.
fn register_pictures() {
    use Access::{Read, Write};
    register("grey", &[picture(3, 1, Read), picture(2, 4, Write)], |launch| {
        let mut grey = array::<f32, Ix2>(&launch.view(1));
        bodies::grey(array::<u8, Ix3>(&launch.view(0)).view(), grey.view_mut());
        put(&launch.view(1), &grey);
        Ok(())
    });
    type Blur = fn(f32, ArrayView2<'_, f32>, ArrayViewMut2<'_, f32>);
    for (name, body) in
        [("blur_rows", bodies::blur_rows as Blur), ("blur_columns", bodies::blur_columns as Blur)]
    {
        register(name, &[FLOAT, picture(2, 4, Read), picture(2, 4, Write)], move |launch| {
            let mut target = array::<f32, Ix2>(&launch.view(2));
            body(launch.scalar(0), array::<f32, Ix2>(&launch.view(1)).view(), target.view_mut());
            put(&launch.view(2), &target);
            Ok(())
        });
    }
    register(
        "sobel",
        &[picture(2, 4, Read), picture(2, 4, Write), picture(2, 1, Write)],
        move |launch| {
            let (mut strength, mut direction) =
                (array::<f32, Ix2>(&launch.view(1)), array::<u8, Ix2>(&launch.view(2)));
            bodies::sobel(
                array::<f32, Ix2>(&launch.view(0)).view(),
                strength.view_mut(),
                direction.view_mut(),
            );
            put(&launch.view(1), &strength);
            put(&launch.view(2), &direction);
            Ok(())
        },
    );
    register_hysteresis();
}

fn register_hysteresis() {
    use Access::{Read, ReadWrite, Write};
    register(
        "thin",
        &[picture(2, 4, Read), picture(2, 1, Read), picture(2, 4, Write)],
        move |launch| {
            let mut ridges = array::<f32, Ix2>(&launch.view(2));
            bodies::thin(
                array::<f32, Ix2>(&launch.view(0)).view(),
                array::<u8, Ix2>(&launch.view(1)).view(),
                ridges.view_mut(),
            );
            put(&launch.view(2), &ridges);
            Ok(())
        },
    );
    register("candidates", &[FLOAT, picture(2, 4, Read), picture(2, 4, Write)], move |launch| {
        let mut labels = array::<u32, Ix2>(&launch.view(2));
        bodies::candidates(
            launch.scalar(0),
            array::<f32, Ix2>(&launch.view(1)).view(),
            labels.view_mut(),
        );
        put(&launch.view(2), &labels);
        Ok(())
    });
    register("unite", &[picture(2, 4, ReadWrite)], move |launch| {
        let mut labels = array::<u32, Ix2>(&launch.view(0));
        bodies::unite(labels.view_mut());
        put(&launch.view(0), &labels);
        Ok(())
    });
    register_edges();
}

fn register_edges() {
    use Access::{Read, ReadWrite, Write};
    register(
        "anchor",
        &[FLOAT, picture(2, 4, Read), picture(2, 4, Read), picture(2, 1, ReadWrite)],
        |launch| {
            let mut anchored = array::<u8, Ix2>(&launch.view(3));
            let (ridges, labels) =
                (array::<f32, Ix2>(&launch.view(1)), array::<u32, Ix2>(&launch.view(2)));
            bodies::anchor(launch.scalar(0), ridges.view(), labels.view(), anchored.view_mut());
            put(&launch.view(3), &anchored);
            Ok(())
        },
    );
    register("keep", &[picture(2, 4, Read), picture(2, 1, Read), picture(2, 1, Write)], |launch| {
        let mut edges = array::<u8, Ix2>(&launch.view(2));
        bodies::keep(
            array::<u32, Ix2>(&launch.view(0)).view(),
            array::<u8, Ix2>(&launch.view(1)).view(),
            edges.view_mut(),
        );
        put(&launch.view(2), &edges);
        Ok(())
    });
    register(
        "overlay",
        &[picture(3, 1, Read), picture(2, 1, Read), picture(3, 1, Write)],
        |launch| {
            let mut overlay = array::<u8, Ix3>(&launch.view(2));
            bodies::overlay(
                array::<u8, Ix3>(&launch.view(0)).view(),
                array::<u8, Ix2>(&launch.view(1)).view(),
                overlay.view_mut(),
            );
            put(&launch.view(2), &overlay);
            Ok(())
        },
    );
}
