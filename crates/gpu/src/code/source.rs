//! CUDA C with its options for the compiler, and the key of the code compiled from it.

use std::path::Path;

use super::compile::CompilerInput;
use super::compiler_library::Product;
use resident_backend::{ParameterLayout, Program};
use resident_code::c_declaration::identifier;
use resident_code::headers::{self, Header};
use resident_code::{includes_others, numbers, prelude};

/// CUDA C together with everything else that affects the compiled code.
pub(super) struct Source<'a> {
    text: &'a str,
    /// The name of the source in the log.
    file: String,
    /// What is declared before it.
    before: String,
    /// What it may include without a folder that has it.
    headers: Vec<&'static Header>,
    options: Vec<String>,
    expression: Option<&'a str>,
    /// Whether the compiled code depends on no other file. Only such code is stored on disk.
    pub(super) is_self_contained: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(
        program: &Program,
        text: &'a str,
        path: Option<&Path>,
        expression: Option<&'a str>,
    ) -> Result<Self, String> {
        let source = &program.source;
        let folder = path.map(|path| {
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
        });
        let mut options: Vec<String> = source
            .defines
            .iter()
            .map(|(name, value)| format!("--define-macro={name}={value}"))
            .collect();
        options.extend(source.options.iter().map(|option| option.to_string()));
        let folders: Vec<&Path> =
            source.includes.iter().map(|folder| &**folder).chain(folder).collect();
        for folder in &folders {
            let text = folder.to_str().ok_or_else(|| {
                format!("the folder {} is not UTF-8, as a compiler's options are", folder.display())
            })?;
            options.push(format!("--include-path={text}"));
        }
        Ok(Self {
            text,
            file: path.map_or_else(
                || format!("{}.cu", identifier(&program.kernel)),
                |path| path.display().to_string(),
            ),
            before: before(text, &program.parameters),
            headers: headers::for_source(text, &folders),
            is_self_contained: source.includes.is_empty()
                && !includes_others(text)
                && !source.options.iter().any(|option| option.contains("include")),
            options,
            expression,
        })
    }

    /// The key of the code compiled for a target. It does not include the source's name in the log.
    pub(super) fn key(&self, target: &str) -> Vec<u8> {
        let mut key = Vec::new();
        let expression = self.expression.unwrap_or_default();
        let fields = [target, expression, &self.before, self.text].map(str::as_bytes);
        let options = self.options.iter().map(String::as_bytes);
        let headers = self.headers.iter().map(|header| header.text.as_bytes());
        for field in fields.into_iter().chain(options).chain(headers) {
            key.extend_from_slice(&(field.len() as u64).to_le_bytes());
            key.extend_from_slice(field);
        }
        key
    }

    /// The architecture that the user's options name, if any.
    pub(super) fn architecture(&self, product: &Product) -> Option<&str> {
        (product.architecture)(&self.options)
    }

    /// Why the compiler must not be given one of the user's options.
    pub(super) fn refused(&self, product: &Product) -> Option<String> {
        (product.refused)(&self.options)
    }

    /// The compiler's input for a target, which is `architecture` if that is set.
    pub(super) fn input(&self, target: &str, product: &Product) -> CompilerInput {
        let text = if self.before.is_empty() {
            self.text.to_owned()
        } else {
            self.before.clone() + &prelude::from_line_1(self.text, &self.file)
        };
        let expression = self.expression.map(str::to_owned);
        // If two architectures were given, NVRTC would take the last.
        let is_free = self.architecture(product).is_none();
        let architecture = is_free.then(|| format!("{}{target}", product.architecture_option));
        let options = (product.translated)(&self.options).into_iter().chain(architecture).collect();
        CompilerInput {
            text,
            file: self.file.clone(),
            headers: self.headers.clone(),
            options,
            target: target.to_owned(),
            expression,
        }
    }
}

/// What is declared before a source.
fn before(text: &str, parameters: &[ParameterLayout]) -> String {
    let prelude = if needs_prelude(text, parameters) { prelude::TEXT } else { "" };
    format!("{prelude}{}", numbers::for_gpu(text))
}

/// Whether a source needs the prelude: if the signature has sized parameters (views), or if the
/// text names something of it. The second condition makes all kernels of one source compile alike,
/// whatever their signatures.
fn needs_prelude(text: &str, parameters: &[ParameterLayout]) -> bool {
    names_prelude(text)
        || parameters.iter().any(|parameter| matches!(parameter, ParameterLayout::Sized { .. }))
}

/// What AMD's compilers may lack without the prelude.
const LACKING: [&str; 5] = ["__shfl_", "__ballot_sync", "__any_sync", "__all_sync", "__syncwarp"];

/// Whether a source names something of the prelude: `resident`, or what AMD's compilers lack.
/// Answering by the text alone makes all kernels of one source compile alike.
fn names_prelude(text: &str) -> bool {
    text.contains("resident") || LACKING.iter().any(|name| text.contains(name))
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use std::path::Path;

    use super::{Product, Source, needs_prelude};
    use resident_backend::{ElementLayout, GpuSource, ParameterLayout, Program};
    use resident_code::includes;
    use resident_core::Access;

    fn program(kernel: &str, source: GpuSource) -> Program {
        let element = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };
        Program {
            kernel: kernel.into(),
            source,
            parameters: [ParameterLayout::Flat { element, access: Access::ReadWrite }].into(),
        }
    }

    fn key(kernel: &str, source: GpuSource, text: &str, expression: Option<&str>) -> Vec<u8> {
        Source::new(&program(kernel, source), text, None, expression)
            .expect("well formed")
            .key("sm_90")
    }

    #[test]
    fn kernels_of_one_source_share_a_key_and_all_else_has_its_own() {
        let text = "__global__ void f(float *x); __global__ void g(resident::View1<float> x)";
        let plain = || GpuSource::c(text);
        assert_eq!(key("f", plain(), text, None), key("g", plain(), text, None));
        let others = [
            key("f", plain().define("N", 3), text, None),
            key("f", plain().define("N", 4), text, None),
            key("f", plain().option("--use_fast_math"), text, None),
            key("f", plain().include("here"), text, None),
            key("f", plain(), text, Some("f")),
            key("f", plain(), "__global__ void f(float *x)", None),
            Source::new(&program("f", plain()), text, None, None)
                .expect("well formed")
                .key("sm_80"),
            Source::new(&program("f", plain()), text, Some(Path::new("kernels/all.cu")), None)
                .expect("well formed")
                .key("sm_90"),
        ];
        for (index, one) in others.iter().enumerate() {
            assert_ne!(*one, key("f", plain(), text, None), "{index}");
            assert!(others[..index].iter().all(|other| other != one), "{index}");
        }
    }

    #[test]
    fn options_reach_the_compiler_in_its_spelling() {
        let source = GpuSource::file("kernels/all.cu")
            .define("N", 3)
            .option("--use_fast_math")
            .include("/opt/headers");
        let program = program("first", source);
        let input = Source::new(&program, "x", Some(Path::new("kernels/all.cu")), None)
            .expect("well formed")
            .input("sm_90", &Product::NVRTC);
        let own = [
            "--define-macro=N=3",
            "--use_fast_math",
            "--include-path=/opt/headers",
            "--include-path=kernels",
        ];
        assert_eq!(input.options, [&own[..], &["--gpu-architecture=sm_90"]].concat());
        assert_eq!((&*input.text, &*input.file), ("x", "kernels/all.cu"));
        let file = Source::new(&program, "x", Some(Path::new("all.cu")), None)
            .expect("well formed")
            .input("sm_90", &Product::NVRTC);
        assert_eq!(
            file.options[file.options.len() - 2],
            "--include-path=.",
            "the folder of a file without one"
        );
    }

    #[test]
    fn an_architecture_from_the_user_is_the_only_one() {
        let program = program("f", GpuSource::c("x").option("-arch").option("compute_80"));
        let source = Source::new(&program, "x", None, None).expect("well formed");
        assert_eq!(source.architecture(&Product::NVRTC), Some("compute_80"));
        let input = source.input("compute_80", &Product::NVRTC);
        assert_eq!(
            (input.options, &*input.target),
            (vec!["-arch".to_owned(), "compute_80".to_owned()], "compute_80")
        );
    }

    #[test]
    fn only_self_contained_sources_are_kept_on_disk() {
        let is_kept = |source, text| {
            Source::new(&program("f", source), text, None, None)
                .expect("well formed")
                .is_self_contained
        };
        let plain = || GpuSource::c("");
        assert!(is_kept(
            plain().define("N", 3).option("--use_fast_math"),
            "// does not include the border\n#define N 3\n"
        ));
        assert!(!is_kept(plain().include("here"), ""));
        assert!(!is_kept(plain().option("--pre-include=here.h"), ""));
        assert!(!is_kept(plain(), "#include \"here.h\"\n"));
        for hidden in [
            "  #  include <a.h>",
            "%:include <a.h>",
            "#inc\\\nlude <a.h>",
            "#if __has_include(<a.h>)",
            "/* */ #include <a.h>",
        ] {
            assert!(includes(hidden), "{hidden}");
        }
    }

    #[test]
    fn sized_parameters_and_sources_that_name_resident_get_the_prelude() {
        let element = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };
        let flat = ParameterLayout::Flat { element, access: Access::Read };
        let sized = ParameterLayout::Sized { element, ndim: Some(2), access: Access::Read };
        assert!(!needs_prelude("__global__ void f(float *x)", &[flat]));
        assert!(needs_prelude("__global__ void f(float *x)", &[flat, sized]));
        assert!(needs_prelude("*x = __shfl_sync(0xffffffff, *x, 0);", &[flat]), "AMD's lack it");
        assert!(needs_prelude(
            "__global__ void f(float *x); __global__ void g(resident::View2<float> y)",
            &[flat]
        ));
    }
}
