//! From a recorded source to PTX.

use std::path::{Path, PathBuf};

use resident_backend::{ElementLayout, Entries, GpuCode, GpuSource, ParameterLayout, Program};
use resident_core::Access;
use resident_ptx_interpreter::recorded::{Argument, Recorded, Source};

/// The program of a recorded source, with these options, and the parameters that arguments tell.
pub(crate) fn program(
    source: &Source,
    arguments: &[Argument],
    options: impl Iterator<Item = String>,
) -> Program {
    let text = without_byte_order_mark(&source.text);
    Program {
        kernel: source.kernel.as_str().into(),
        source: GpuSource {
            code: GpuCode::C(text.into()),
            entry: source.entry.as_deref().map(Into::into),
            defines: defines(&source.defines),
            options: options.map(|option| option.as_str().into()).collect(),
            includes: source.includes.iter().map(|folder| Path::new(folder).into()).collect(),
            entries: Entries::default(),
        },
        parameters: arguments.iter().map(parameter).collect(),
    }
}

/// The options that name the folders of the toolkit's headers.
pub(crate) fn header_options() -> Vec<String> {
    let folders = headers().into_iter().flat_map(|folder| [folder.clone(), folder.join("cccl")]);
    folders.map(|folder| format!("--include-path={}", folder.display())).collect()
}

/// The PTX of a launch, and the name of the kernel in it: by the library's own NVRTC, with the same
/// options and declarations as for a GPU.
pub(crate) fn ptx_of(launch: &Recorded) -> Result<(String, String), String> {
    let source = &launch.source;
    let mut options = source.options.clone();
    if !options.iter().any(|option| option.contains("fmad") || option.contains("fast_math")) {
        options.push("--fmad=false".to_owned());
    }
    options.extend(header_options());
    let program = program(source, &launch.arguments, options.into_iter());
    let text = without_byte_order_mark(&source.text);
    let path = source.file.as_deref().map(PathBuf::from);
    resident_gpu::ptx_by_nvrtc(&program, text, path.as_deref())
}

/// The headers of the toolkit, where Python's packages put them beside NVRTC.
fn headers() -> Option<PathBuf> {
    let nvrtc = PathBuf::from(std::env::var_os("RESIDENT_NVRTC")?);
    let folder = nvrtc.parent()?.parent()?.join("include");
    folder.is_dir().then_some(folder)
}

/// As the library takes it, without the mark that some editors write first.
fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

type Text = std::sync::Arc<str>;

fn defines(defines: &[(String, String)]) -> Vec<(Text, Text)> {
    defines.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect()
}

/// What decides whether views are declared before the source.
fn parameter(argument: &Argument) -> ParameterLayout {
    let (element, access) =
        (ElementLayout { len_bytes: 1, align_bytes: 1, rust_name: "" }, Access::ReadWrite);
    match &argument.array {
        None => ParameterLayout::Scalar(element),
        Some(array) if array.is_view => ParameterLayout::Sized { element, ndim: None, access },
        Some(_) => ParameterLayout::Flat { element, access },
    }
}
