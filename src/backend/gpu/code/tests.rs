//! Tests with a real NVRTC, as in `real_nvrtc.rs`, of the sources that the library generates.

use super::real_nvrtc::compiler;
use super::source::Source;
use crate::backend::gpu_source::GpuCode;
use crate::ops::tests::every_program;

/// No file has the sources of `ops`.
#[test]
fn real_nvrtc_compiles_every_operation() {
    let Some(compiler) = compiler() else { return };
    let programs = every_program();
    assert!(programs.len() > 200, "only {}", programs.len());
    for program in programs {
        let GpuCode::C(text) = &program.source.code else { unreachable!("all are texts") };
        let source = Source::new(program, text, None, None).expect("well formed");
        let compiled = compiler
            .compile(&source.input("sm_90", compiler.product()))
            .unwrap_or_else(|log| panic!("{}: {log}\n{text}", program.kernel));
        let entry = program.source.entry.as_deref().expect("all have names");
        assert_eq!(compiled.kernel_names(), [entry], "{}", program.kernel);
    }
}
