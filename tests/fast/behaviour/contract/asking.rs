//! Queries, `Debug` and `Drop` never copy elements.

use support::prelude::*;

fn is_shared<T: Send + Sync + 'static>() {}

#[test]
fn arrays_can_be_shared_and_sent() {
    is_shared::<SmartArray<f32, Ix2>>();
    is_shared::<resident::Residency>();
    is_shared::<Pending<Array2<f32>>>();
    fn sent<T: Send + Sync>(_: &T) {}
    let mut array = SmartArray::<f32, _>::ones((2, 2));
    sent(&array.view());
    sent(&array.host().expect("a constant"));
    sent(&array.gpu_on(&Device::cpu().stream()).expect("enough memory"));
    sent(&array.host_mut().expect("valid"));
    sent(&array.gpu_mut_on(&Device::cpu().stream()).expect("enough memory"));
    sent(&array.view_mut());
}

#[test]
fn shapes_are_reported_as_by_ndarray() {
    let mut table = SmartArray::<u16, _>::uninit((3, 4));
    assert_eq!((table.dim(), table.ndim(), table.len_bytes()), ((3, 4), 2, 24));
    let column = table.slice(s![.., 1]);
    let len: usize = column.dim();
    assert_eq!((len, column.ndim(), column.len_bytes()), (3, 1, 6));
    let open = table.slice_mut(s![..0, ..]);
    assert_eq!((open.dim(), open.len_bytes()), ((0, 4), 0));
    assert_eq!(SmartArray::<f64, _>::zeros(vec![2, 3, 4]).ndim(), 3);
}

#[test]
fn no_question_moves_data_or_calls_a_device() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 10]).named("asked");
    drop(array.gpu_mut_on(&device.stream())?);
    device.synchronize()?;
    let calls = device.emulation().expect("emulated").calls().len();
    let answers = (
        array.shape().len(),
        array.len(),
        array.is_empty(),
        array.raw_dim(),
        array.name(),
        array.residency(),
    );
    let exclusive = format!("{:?}", array.slice_mut(s![..2]));
    let words = format!("{answers:?} {array:?} {:?} {exclusive}", array.slice(s![2..]));
    assert!(words.contains("asked"));
    assert!(array.is_c_contiguous() && array.is_f_contiguous());
    assert_eq!(moves(array.traffic()), [(1, 40), (0, 0), (0, 0)]);
    assert_eq!(array.residency().host(), Stale);
    let listed = audit::inventory();
    assert!(listed.iter().any(|entry| entry.name() == "asked" && entry.bytes() == 40));
    assert_eq!(device.emulation().expect("emulated").calls().len(), calls, "nothing was asked");
    Ok(())
}

#[test]
fn dropping_moves_nothing_and_waits_for_nothing() -> Result<()> {
    let device = Device::emulated(Emulation::new().seed(1));
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    drop(array.gpu_mut_on(&device.stream())?);
    drop(array);
    assert!(!device.stream().is_idle()?, "no call waited for the upload, so it has not run");
    assert_eq!(moves(device.traffic()), [(1, 40), (0, 0), (0, 0)]);
    device.synchronize()?;
    assert_eq!(device.memory().in_use, 0);
    Ok(())
}

#[test]
fn a_name_is_what_was_given_or_type_shape_and_line() {
    let array = SmartArray::<f32, _>::zeros((3, 4));
    let line = line!() - 1;
    let name = array.name();
    assert!(
        name.contains("f32")
            && name.contains("[3, 4]")
            && name.contains(&format!("asking.rs:{line}")),
        "{name}"
    );
    let from = SmartArray::from(Array2::<u8>::zeros((1, 2)));
    assert!(from.name().contains(&format!("asking.rs:{}", line!() - 1)), "{}", from.name());
    assert_eq!(&*from.named("photo").name(), "photo");
    assert_eq!(&*SmartArray::<u8, _>::zeros(1).named(String::from("owned")).name(), "owned");
}

#[test]
fn residency_is_absent_stale_partial_or_valid() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::<f32, _>::uninit(10);
    assert_eq!(validity(&array.residency(), &device), [Absent, Absent]);
    array.slice_mut(s![..3]).host_overwrite()?.fill(1.0);
    assert_eq!(array.residency().host(), Partial { valid_bytes: 12 });
    assert_eq!(array.slice(s![..3]).residency().host(), Valid);
    assert_eq!(array.slice(s![5..]).residency().host(), Stale);
    let then = array.residency();
    drop(array.slice_mut(s![3..]).host_overwrite()?);
    assert_eq!(array.residency().host(), Valid);
    assert_eq!(then.host(), Partial { valid_bytes: 12 }, "a snapshot");
    assert!(!format!("{then} {then:?}").is_empty());
    Ok(())
}

#[test]
fn contiguity_ignores_lone_axes() {
    let array = SmartArray::<f32, _>::zeros((4, 1, 5));
    assert!(array.is_c_contiguous() && !array.is_f_contiguous());
    assert!(
        array.slice(s![.., .., 0]).is_f_contiguous()
            == array.host().is_ok_and(|host| host.slice(s![.., .., 0]).is_standard_layout())
    );
    assert!(SmartArray::<f32, _>::zeros((1, 5)).is_f_contiguous());
    assert_eq!(moves(array.traffic()), NOTHING);
}

#[test]
fn guards_print_what_they_show() -> Result<()> {
    let mut array = SmartArray::from(vec![1, 2]);
    assert_eq!(format!("{}", array.host()?), "[1, 2]");
    assert!(format!("{:?}", array.host()?).starts_with("[1, 2]"));
    assert!(format!("{:?}", array.host_mut()?).starts_with("[1, 2]"));
    Ok(())
}

#[test]
fn host_guards_are_ndarrays_arrays() -> Result<()> {
    let mut array = SmartArray::from(Array2::<f64>::ones((2, 3)));
    {
        let mut host = array.host_mut()?;
        host[[1, 2]] = 4.0;
        *host += 1.0;
        host.mapv_inplace(|x| x * 2.0);
        host.row_mut(0).fill(0.0);
    }
    let host = array.host()?;
    let reference: &ndarray::ArrayRef<f64, Ix2> = &host;
    assert_eq!(
        (reference.sum(), host.dim(), host.view().nrows(), host[(1, 2)]),
        (18.0, (2, 3), 2, 10.0)
    );
    assert_eq!(*host, array.host()?.to_owned());
    assert_eq!(host.to_owned() + &*host, &*host * 2.0);
    Ok(())
}
