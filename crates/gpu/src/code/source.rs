//! CUDA C with its options for the compiler, and the key of the code compiled from it.

use std::path::Path;

use super::compilation::c_string;
use super::compile::CompilerInput;
use super::compiler_library::Product;
use resident_backend::Program;
use resident_code::c_declaration::identifier;
use resident_code::headers::{self, Header};
use resident_code::{includes_others, kernels, numbers, prelude};

/// CUDA C together with everything else that affects the compiled code.
pub(super) struct Source {
    /// With its kernels listed, and what lists those of name expressions.
    text: String,
    behind: String,
    /// The name of the source in the log.
    file: String,
    /// What is declared before it.
    before: String,
    /// What it may include without a folder that has it.
    headers: Vec<&'static Header>,
    options: Vec<String>,
    expressions: Vec<String>,
    /// Whether the compiled code depends on no other file. Only such code is stored on disk.
    pub(super) is_self_contained: bool,
}

impl Source {
    /// The source of a program, from which functions are selected by name expressions.
    pub(super) fn new(
        program: &Program,
        text: &str,
        path: Option<&Path>,
        expressions: &[String],
    ) -> Result<Self, String> {
        c_string(text)?;
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
        let (listed, names) =
            kernels::listed(text, |kernel| format!("resident_types({})", kernel.name));
        let is_other = |expression: &&String| !names.contains(expression);
        Ok(Self {
            text: listed,
            behind: expressions.iter().filter(is_other).map(|one| types_of(one)).collect(),
            file: path.map_or_else(
                || format!("{}.cu", identifier(&program.kernel)),
                |path| path.display().to_string(),
            ),
            before: before(text),
            headers: headers::for_source(text, &folders),
            is_self_contained: source.includes.is_empty()
                && !includes_others(text)
                && !source.options.iter().any(|option| option.contains("include")),
            options,
            expressions: expressions.to_vec(),
        })
    }

    /// The key of the code compiled for a target. It does not include the source's name in the log.
    pub(super) fn key(&self, target: &str) -> Vec<u8> {
        let mut key = self.module_key();
        let expressions = self.expressions.iter().map(String::as_bytes);
        expressions.chain([target.as_bytes()]).for_each(|field| add_to_key(&mut key, field));
        key
    }

    /// The key of the module, whatever the name expressions.
    pub(super) fn module_key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        let fields = [self.before.as_bytes(), self.text.as_bytes()].into_iter();
        let options = self.options.iter().map(String::as_bytes);
        let headers = self.headers.iter().map(|header| header.text.as_bytes());
        fields.chain(options).chain(headers).for_each(|field| add_to_key(&mut key, field));
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
        let source = prelude::from_line_1(&self.text, &self.file);
        let text = format!("{}{source}\n{}", self.before, self.behind);
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
            expressions: self.expressions.clone(),
        }
    }
}

fn add_to_key(key: &mut Vec<u8>, field: &[u8]) {
    key.extend_from_slice(&(field.len() as u64).to_le_bytes());
    key.extend_from_slice(field);
}

/// What describes a kernel's parameters, as [`described_code`](super::described_code) reads it. A
/// compiler must not leave it out.
const LIST: &str = r#"
#ifdef __AMDGCN__
#define RESIDENT_KEPT __attribute__((used))
#else
#define RESIDENT_KEPT
#endif
#define RESIDENT_TYPES_OF(id, ...)                                                                \
    extern "C" __device__ RESIDENT_KEPT const ::resident::parameters::Types<                      \
        ::resident::parameters::Of<decltype(&__VA_ARGS__)>::count>                                \
        resident_parameters_##id = ::resident::parameters::Of<decltype(&__VA_ARGS__)>::value;
#define resident_types(name) RESIDENT_TYPES_OF(name, name)
"#;

/// What is declared before a source.
fn before(text: &str) -> String {
    format!(
        "{}{}{LIST}{}",
        prelude::TEXT,
        prelude::PARAMETERS,
        numbers::for_gpu(text, includes_others)
    )
}

/// What describes the parameters of the kernel of a name expression.
fn types_of(expression: &str) -> String {
    let function = expression.trim().trim_start_matches('&');
    let id = identifier(expression);
    format!("#line 1 \"CudaSource::entry\"\nRESIDENT_TYPES_OF({id}, {function})\n")
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use std::path::Path;

    use super::{Product, Source};
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
        let expressions: Vec<String> = expression.into_iter().map(str::to_owned).collect();
        Source::new(&program(kernel, source), text, None, &expressions)
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
            Source::new(&program("f", plain()), text, None, &[]).expect("well formed").key("sm_80"),
            Source::new(&program("f", plain()), text, Some(Path::new("kernels/all.cu")), &[])
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
        let input = Source::new(&program, "x", Some(Path::new("kernels/all.cu")), &[])
            .expect("well formed")
            .input("sm_90", &Product::NVRTC);
        let own = [
            "--define-macro=N=3",
            "--use_fast_math",
            "--include-path=/opt/headers",
            "--include-path=kernels",
        ];
        assert_eq!(input.options, [&own[..], &["--gpu-architecture=sm_90"]].concat());
        assert!(input.text.ends_with("\n#line 1 \"kernels/all.cu\"\nx\n"), "{}", input.text);
        assert_eq!(input.file, "kernels/all.cu");
        let file = Source::new(&program, "x", Some(Path::new("all.cu")), &[])
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
        let source = Source::new(&program, "x", None, &[]).expect("well formed");
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
            Source::new(&program("f", source), text, None, &[])
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
    fn kernels_are_described_where_the_compiler_knows_them() {
        let text = "__global__ void f(int *x) { }";
        let expressions = ["f".to_owned(), "g<int>".to_owned()];
        let source = Source::new(&program("f", text.into()), text, None, &expressions);
        let input = source.expect("well formed").input("sm_90", &Product::NVRTC);
        let expected = "(int *x) { } resident_types(f)\n#line 1 \"CudaSource::entry\"\n\
                        RESIDENT_TYPES_OF(g_int_, g<int>)\n";
        assert!(input.text.ends_with(expected), "{}", input.text);
    }
}
