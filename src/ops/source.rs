//! The CUDA C of the operations.

use std::fmt::Write as _;

use super::c_type::CType;
use resident_backend::GpuSource;

/// One parameter of an elementwise kernel. In the expression it is the value of its element.
pub(super) enum Parameter {
    Scalar(&'static str, CType),
    In(&'static str, CType),
    Out(CType),
    InOut(CType),
}

/// A kernel with one thread per element: `out = value`, where `T` is the type of the computation
/// and `W` the one that wraps around.
pub(super) fn elementwise(
    rank: usize,
    compute: CType,
    parameters: &[Parameter],
    value: &str,
) -> GpuSource {
    let (mut declared, mut loaded, mut out) = (Vec::new(), String::new(), compute);
    let mut types = Vec::new();
    for parameter in parameters {
        match parameter {
            Parameter::Scalar(name, c) => {
                declared.push(format!("{} {name}_", c.memory));
                let _ = writeln!(loaded, "    {} {name} = {}({name}_);", c.name, c.load);
            }
            Parameter::In(name, c) => {
                declared.push(format!("resident::View<const {}, {rank}> {name}s", c.memory));
                let _ = writeln!(loaded, "    {} {name} = {}({name}s.at(i));", c.name, c.load);
            }
            Parameter::Out(c) | Parameter::InOut(c) => {
                declared.push(format!("resident::View<{}, {rank}> out", c.memory));
                out = *c;
            }
        }
        if let Parameter::InOut(c) = parameter {
            let _ = writeln!(loaded, "    {} y = {}(out.at(i));", c.name, c.load);
        }
        let (Parameter::Scalar(_, c)
        | Parameter::In(_, c)
        | Parameter::Out(c)
        | Parameter::InOut(c)) = parameter;
        types.push(*c);
    }
    // On NVIDIA GPUs `complex.cu` sees to that.
    let is_exact = types.iter().any(CType::is_complex);
    let text = format!(
        "{}typedef {} T;\ntypedef {} W;\n\n\
         extern \"C\" __global__ void apply({}) {{\n    \
             long long i = resident::thread();\n    \
             if (i >= out.size()) return;\n\
             {loaded}    out.at(i) = {}(({})({value}));\n\
         }}\n",
        CType::preludes(types),
        compute.name,
        compute.word,
        declared.join(", "),
        out.store,
        out.name,
    );
    let source = GpuSource::c(text).entry("apply");
    if is_exact { source.option("--fmad=false") } else { source }
}

/// A kernel of files, whose defaults these declarations replace.
pub(super) fn of_file(texts: &[&str], entry: &'static str, declarations: &str) -> GpuSource {
    let defines = format!("#define RESIDENT_OPS\n#define KERNEL_{entry}\n");
    GpuSource::c(defines + declarations + &texts.concat()).entry(entry)
}

/// The types and the rank.
pub(super) fn declarations(rank: usize, from: CType, element: CType) -> String {
    let preludes = CType::preludes([from, element]);
    format!(
        "{preludes}typedef {} A;\ntypedef {} T;\ntypedef {} W;\nenum {{ RANK = {rank} }};\n",
        from.name, element.name, element.word,
    )
}

/// A function: its result, its name and its parameters, and its value.
pub(super) fn function(signature: &str, value: &str) -> String {
    format!("static __device__ __forceinline__ {signature} {{ return {value}; }}\n")
}
