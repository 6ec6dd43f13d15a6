//! The list of a source's kernels, with what `__launch_bounds__` says of each. Its arguments are
//! constants that only the compiler knows; those of a template may depend on its parameters. Where
//! a macro hides them, they are read from the preprocessed source.

use std::borrow::Cow;

use resident_code::kernels::{Definition, with_own_names, with_text_behind};
use resident_code::words::words;

/// The launch bounds of a kernel that a macro hides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HiddenBounds {
    kernel: String,
    /// The arguments of `__launch_bounds__`, without macros.
    arguments: String,
}

/// A source with the list of its kernels.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) text: String,
    /// The kernels that are in the list.
    pub(super) names: Vec<String>,
    /// The templates of kernels behind which a constant has their bound.
    pub(super) bounded_templates: Vec<String>,
}

/// Puts `resident_host_kernel` behind each kernel, and behind a template that has bounds a constant
/// with the same parameters, on the same lines. A name that several kernels have is left out.
pub(super) fn listed(text: &str) -> Listed {
    let all = with_own_names(text);
    let is_listed = |one: &Definition| !one.is_template || has_constant(one);
    let kernels: Vec<Definition> = all.into_iter().filter(is_listed).collect();
    let names = |is_template: bool| {
        let some = kernels.iter().filter(move |one| one.is_template == is_template);
        some.map(|one| one.name.clone()).collect()
    };
    Listed {
        text: with_text_behind(text, &kernels, behind),
        names: names(false),
        bounded_templates: names(true),
    }
}

/// Whether a constant can have the bound of this template. A macro may make its name of pieces.
fn has_constant(kernel: &Definition) -> bool {
    let Definition { name, launch_bounds, template_header, .. } = kernel;
    !launch_bounds.is_empty() && template_header.ends_with('>') && !name.contains('#')
}

fn behind(kernel: &Definition) -> String {
    let Definition { name, launch_bounds, template_header, .. } = kernel;
    let separator = if launch_bounds.is_empty() { "" } else { ", " };
    if kernel.is_template {
        return format!(
            "{} constexpr unsigned int {} = ::resident::host::threads_max({});",
            template_header.replace('\n', " "),
            constant(name),
            launch_bounds.replace('\n', " ")
        );
    }
    format!("resident_host_kernel({name}{separator}{})", launch_bounds.replace('\n', " "))
}

fn constant(name: &str) -> String {
    format!("resident_threads_max_of_{name}")
}

/// The bound of the kernel of a name expression: `ns::scale<float>`, whose plain name is `scale`.
pub(super) fn of_expression(
    function: &str,
    plain: &str,
    bounded_templates: &[String],
) -> Option<String> {
    let is_bounded = bounded_templates.iter().any(|name| name == plain);
    let arguments = function.find('<').filter(|_| is_bounded);
    let at = arguments?;
    let namespace = function[..at].trim_end().strip_suffix(plain)?;
    Some(format!("({namespace}{}{})", constant(plain), &function[at..]))
}

/// The launch bounds that a preprocessed source tells. Those that no macro hides are among them:
/// the list needs them for names in namespaces.
pub(super) fn hidden(preprocessed: &str) -> Vec<HiddenBounds> {
    let all = with_own_names(preprocessed).into_iter();
    let bounded = all.filter(|one| !one.launch_bounds.is_empty());
    let bounds = |Definition { name: kernel, launch_bounds, .. }| HiddenBounds {
        kernel,
        arguments: launch_bounds.replace('\n', " "),
    };
    bounded.map(bounds).collect()
}

/// The source that lists its kernels, with these bounds of kernels that are no templates.
pub(super) fn with_hidden<'t>(listed: &'t str, hidden: &[HiddenBounds]) -> Cow<'t, str> {
    hidden.iter().fold(Cow::Borrowed(listed), |text, HiddenBounds { kernel, arguments }| {
        let from = format!("resident_host_kernel({kernel})");
        Cow::Owned(text.replace(&from, &format!("resident_host_kernel({kernel}, {arguments})")))
    })
}

/// Such a bound of the kernel of a name expression. There the names of the source's constants may
/// not be known, such as those of its namespaces and of the template.
pub(super) fn of_hidden(plain: &str, hidden: &[HiddenBounds]) -> Option<String> {
    let HiddenBounds { arguments, .. } = hidden.iter().find(|one| one.kernel == plain)?;
    let is_number = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit());
    let are_numbers = words(arguments).all(|(_, word)| is_number(word));
    are_numbers.then(|| format!("::resident::host::threads_max({arguments})"))
}

#[cfg(test)]
mod tests {
    use super::{hidden, listed, of_expression, of_hidden, with_hidden};

    #[test]
    fn kernels_are_listed_with_their_bounds() {
        let text = "__global__ void f() {} __global__ void __launch_bounds__(64, 2) g() {}\n\
                    template <int n> __global__ __launch_bounds__(2 * n) void h() {}\n\
                    template <int n> __global__ void free() {}";
        let listed = listed(text);
        assert_eq!(listed.names, ["f", "g"]);
        assert_eq!(listed.bounded_templates, ["h"]);
        assert_eq!(listed.text.lines().count(), text.lines().count());
        for expected in [
            "f() {} resident_host_kernel(f)",
            "g() {} resident_host_kernel(g, 64, 2)",
            "template <int n> constexpr unsigned int resident_threads_max_of_h = \
             ::resident::host::threads_max(2 * n);",
        ] {
            assert!(listed.text.contains(expected), "{}", listed.text);
        }
    }

    #[test]
    fn the_bound_of_an_expression_is_the_constant_with_its_arguments() {
        let bounded = ["scale".to_owned()];
        let of = |function, plain| of_expression(function, plain, &bounded);
        let constant = "(ns::resident_threads_max_of_scale<A<1>, 2>)".to_owned();
        assert_eq!(of("ns::scale<A<1>, 2>", "scale"), Some(constant));
        assert_eq!(of("other<1>", "other"), None);
        assert_eq!(of("scale", "scale"), None);
    }

    #[test]
    fn bounds_that_a_macro_hides_are_read_from_the_preprocessed_source() {
        let text = "__global__ void BOUNDS f() {} __global__ __launch_bounds__(8) void g() {}\n\
                    template <int n> __global__ BOUNDS void h() {}";
        let preprocessed = text.replace("BOUNDS", "__launch_bounds__(2 * 32, WIDTH)");
        let names = hidden(&preprocessed);
        assert_eq!(names.iter().map(|one| &*one.kernel).collect::<Vec<_>>(), ["f", "g", "h"]);
        let listed = listed(text).text;
        let with = with_hidden(&listed, &names);
        for expected in ["resident_host_kernel(f, 2 * 32, WIDTH)", "resident_host_kernel(g, 8)"] {
            assert!(with.contains(expected), "{with}");
        }
        assert_eq!(of_hidden("h", &names), None, "where `WIDTH` may not be known");
        let numbers = hidden(&text.replace("BOUNDS", "__launch_bounds__(2 * 32)"));
        let most = "::resident::host::threads_max(2 * 32)".to_owned();
        assert_eq!(of_hidden("h", &numbers), Some(most));
        assert_eq!(of_hidden("other", &numbers), None);
    }
}
