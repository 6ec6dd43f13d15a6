//! Chains of rearrangements of one field of records: the field moves, and its neighbour does not.

use resident::bytemuck::{Pod, Zeroable};
use resident::ndarray::ArrayD;
use resident::{DeviceArray, Result, SmartArray, Stream, field, field_mut};

use super::chain::{Operation, distinct, owned, positions};
use super::launched::{Kernels, STEP};
use super::{Chain, check_view};

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[bytemuck(crate = "resident::bytemuck")]
pub struct Record {
    neighbour: u32,
    number: u32,
}

/// Records of these numbers, in their axis order.
fn records(numbers: &ArrayD<u32>) -> ArrayD<Record> {
    numbers.mapv(|number| Record { neighbour: !number, number })
}

impl Chain {
    /// The field of the view at the end of the chain is the view at the end of the field's chain.
    /// Reading it moves its bytes, and reading the view the others.
    pub fn run_on_fields(&self, stream: &Stream, kernels: &Kernels) -> Result<()> {
        let mut expected = positions(&self.shape, self.is_fortran);
        let mut array = SmartArray::from(records(&expected));
        array.gpu_mut_on(stream).map(drop)?;
        let (mut view, mut number) = (array.view(), field!(array, Record, number));
        for step in &self.steps {
            let Some(operation) = Operation::of(*step, view.shape(), true) else { continue };
            let next = (operation.on_view(&view)?, operation.on_view(&number)?);
            assert_eq!(next.0.is_some(), next.1.is_some(), "either both need a copy or none");
            if let (Some(next), Some(next_number)) = next {
                expected = operation.expected(&expected);
                (view, number) = (next, next_number);
            }
        }
        let of_view = field!(view, Record, number);
        assert_eq!(of_view.shape(), number.shape());
        check_view(stream, &number, &expected)?;
        kernels.read(stream, &number, &expected)?;
        assert_eq!(owned(of_view.host()?.view()), expected);
        let before = array.traffic().to_host.bytes;
        assert_eq!(owned(view.host()?.view()), records(&expected));
        assert_eq!(array.traffic().to_host.bytes - before, 4 * distinct(&expected));
        Ok(())
    }

    /// As [`run_on_fields`](Self::run_on_fields), for an array that is on a device only.
    pub fn run_on_device_fields(&self, stream: &Stream, kernels: &Kernels) -> Result<()> {
        let mut expected = positions(&self.shape, self.is_fortran);
        let array = DeviceArray::from_host_on(stream, &records(&expected))?;
        let mut number = field!(array, Record, number);
        for step in &self.steps {
            let Some(operation) = Operation::of(*step, number.shape(), true) else { continue };
            if let Some(next) = operation.on_device_view(&number)? {
                expected = operation.expected(&expected);
                number = next;
            }
        }
        assert_eq!(number.shape(), expected.shape());
        assert_eq!(number.copy_to_host()?, expected);
        assert_eq!(number.to_contiguous()?.copy_to_host()?, expected);
        kernels.read(stream, &number, &expected)
    }

    /// The field's view at the end of the chain writes the elements of ndarray's, and no others.
    pub fn run_on_exclusive_fields(&self, stream: &Stream, kernels: &Kernels) -> Result<()> {
        let mut part = positions(&self.shape, self.is_fortran);
        let mut contents = records(&part);
        let mut array = SmartArray::from(contents.clone());
        array.gpu_mut_on(stream).map(drop)?;
        let mut number = field_mut!(array, Record, number);
        for step in &self.steps {
            let Some(operation) = Operation::of(*step, number.shape(), false) else { continue };
            if !operation.fits(&number.view()) {
                continue;
            }
            part = operation.expected(&part);
            number = operation.on_view_mut(number)?;
        }
        let before = number.traffic().to_host.bytes;
        assert_eq!(owned(number.host()?.view()), part);
        let mut values: Vec<u32> = (1_000..).take(part.len()).collect();
        number.copy_from_slice(&values)?;
        assert_eq!(number.traffic().to_host.bytes - before, 4 * part.len() as u64);
        kernels.change(stream, &mut number, part.shape())?;
        values.iter_mut().for_each(|value| *value += STEP);
        let elements = contents.as_slice_memory_order_mut().expect("contiguous");
        for (old, value) in part.iter().zip(values) {
            let is_old = |record: &&mut Record| record.neighbour == !old;
            elements.iter_mut().find(is_old).expect("a record of the array").number = value;
        }
        assert_eq!(owned(array.host()?.view()), contents);
        Ok(())
    }
}
