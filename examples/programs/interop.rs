//! Crates that know nothing of devices, on an array that a device has changed. Guards of the host's
//! copy are ndarray's views, `&Array`s and slices, so that these crates take them without a copy:
//! what moves is one download. `ndarray-npy` writes `guard.view()` and reads arrays alike. And
//! memory of other crates, which arrays read in place: shared bytes, a mapped file, tensors in it.

use std::fs::File;

use bytes::Bytes;
use memmap2::Mmap;
use nalgebra::DMatrixView;
use rayon::prelude::*;
use resident::ndarray::{Array1, Array2, ArrayBase, ArrayView2, ArrayViewMut2, Axis, Data, Ix2};
use resident::ndarray::{IxDyn, Zip, array};
use resident::prelude::*;
use resident::{bytemuck, ops};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

type Failure = Box<dyn std::error::Error>;

/// Bytes of a tensor, as the numbers that they are. The format aligns tensors to 8 bytes.
struct Floats(Bytes);

impl AsRef<[f32]> for Floats {
    fn as_ref(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }
}

// Functions of another crate, as such functions are declared.

fn total(table: &Array2<f32>) -> f32 {
    table.sum()
}

fn double(mut table: ArrayViewMut2<'_, f32>) {
    table *= 2.0;
}

fn mean(table: ArrayView2<'_, f32>) -> Option<f32> {
    table.mean()
}

fn largest<S: Data<Elem = f32>>(table: &ArrayBase<S, Ix2>) -> f32 {
    table.fold(f32::MIN, |largest, x| largest.max(*x))
}

fn main() -> std::result::Result<(), Failure> {
    guards()?;
    let path = std::env::temp_dir().join(format!("interop-{}.safetensors", std::process::id()));
    let numbers: Vec<f32> = (0..12).map(|n| n as f32).collect();
    let tensor = TensorView::new(Dtype::F32, vec![3, 4], bytemuck::cast_slice(&numbers))?;
    std::fs::write(&path, safetensors::serialize([("weights", tensor)], None)?)?;
    let read = owners(&File::open(&path)?);
    std::fs::remove_file(path)?;
    read
}

/// Arrays over memory of other crates. They keep its owners.
fn owners(file: &File) -> std::result::Result<(), Failure> {
    // bytes: a handle is an owner.
    let message = Bytes::from(vec![7_u8; 1000]);
    let received = SmartArray::from_owner(message.slice(100..));
    println!("{} bytes, of which the largest is {}", received.len(), received.max()?);

    // memmap2 and safetensors: `Bytes` owns the map, and each tensor is a part of it.
    // SAFETY: nothing else writes the file.
    let file = Bytes::from_owner(unsafe { Mmap::map(file) }?);
    let tensors = SafeTensors::deserialize(&file)?;
    let tensor = tensors.tensor("weights")?;
    let floats = Floats(file.slice_ref(tensor.data()));
    let weights = SmartArray::from_owner_shaped(floats, IxDyn(tensor.shape()))?.named("weights");
    assert_eq!(weights.host()?.as_ptr().cast(), tensor.data().as_ptr());
    println!("weights {:?}: sum {}", weights.shape(), weights.sum()?);

    // The same file as bytes, of which a view shows numbers of another type.
    let bytes = SmartArray::from_owner(file.clone());
    let header_bytes = bytes.slice(s![..8]).reinterpret::<u64>()?.host()?[0];
    println!("its header has {header_bytes} bytes");
    Ok(())
}

/// Guards of the host as arguments of other crates.
fn guards() -> std::result::Result<(), Failure> {
    let start = SmartArray::from(Array2::from_shape_fn((400, 300), |(i, j)| (i + j) as f32));
    let mut table = SmartArray::uninit((400, 300)).named("table");
    ops::mul(&start, &SmartArray::full((400, 300), 0.5), &mut table)?;

    // ndarray: an `&Array`, a mutable view, a view, and anything with elements.
    println!("total {}", total(table.host()?.as_array().expect("the whole array")));
    double(table.host_mut()?.view_mut());
    let host = table.host()?;
    println!("mean {:?}, largest {}", mean(host.view()), largest(&host.view()));

    // rayon: a slice, rows, all elements, pairs of rows and numbers.
    table.host_mut()?.as_slice_mut().expect("row-major").par_iter_mut().for_each(|x| *x += 1.0);
    table.host_mut()?.axis_iter_mut(Axis(0)).into_par_iter().for_each(|mut row| row += 1.0);
    table.host_mut()?.par_mapv_inplace(|x| 0.5 * x);
    let host = table.host()?;
    let mut sums = Array1::zeros(400);
    Zip::from(&mut sums).and(host.rows()).par_for_each(|sum: &mut f32, row| *sum = row.sum());
    println!("the first rows sum up to {:.0}", sums.slice(s![..3]));
    println!("all elements to {}", host.view().into_par_iter().sum::<f32>());

    // nalgebra: its matrices are column-major, so that our rows are its columns.
    let slice = host.as_slice().expect("row-major");
    println!("norm {}", DMatrixView::from_slice(slice, 300, 400).norm());

    // serde, there and back.
    let json = serde_json::to_string(&host.view())?;
    let parsed = SmartArray::from(serde_json::from_str::<Array2<f32>>(&json)?);
    assert!(*parsed.host()? == *host);
    assert_eq!(table.slice(s![..2, ..3]).host()?, array![[1.0, 1.5, 2.0], [1.5, 2.0, 2.5]]);
    println!("{} bytes of JSON; the table: {}", json.len(), table.traffic());
    Ok(())
}
