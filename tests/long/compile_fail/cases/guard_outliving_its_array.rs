//! A guard that outlives a view, but not the array.
//! Wrong: a guard that outlives its array.
//~     let array = SmartArray::<f32, _>::ones(8);\n =>
//~         let view =>         let array = SmartArray::<f32, _>::ones(8);\n        let view
use resident::{Result, SmartArray, ndarray::s};

pub(crate) fn main() -> Result<()> {
    let array = SmartArray::<f32, _>::ones(8);
    let seen = {
        let view = array.slice(s![..4]);
        view.host()?
    };
    println!("{}", seen.sum());
    Ok(())
}
