//! The functions of the device that use features that are not there, and those that may call them,
//! as the names in the text say.
//!
//! Only functions in namespaces, and macros, are looked at whose name no other has and around which
//! there is no `#if`: members, operators and overloads cannot be told by name, and what is in a
//! condition may not be compiled at all. These stay, and the compiler says what is wrong with them.

use std::ops::Range;

use super::features::{Use, first_use, line_of};
use super::outline::{Function, functions};
use resident_code::words::words;

/// A function that cannot be compiled, or a macro that may call one.
pub(super) struct Unusable<'t> {
    pub(super) name: &'t str,
    pub(super) replaced: Replaced,
    /// The use of the feature, in this function or in one that it may call.
    cause: Use<'t>,
    /// The name of the function that uses it.
    of: &'t str,
}

/// Which part of the text is replaced.
pub(super) enum Replaced {
    /// Nothing of a macro.
    Nothing,
    Body(Range<usize>),
    /// A function whose parameters cannot be compiled either.
    Whole(Range<usize>),
}

/// What may use a feature, or call what does.
struct Candidate<'t> {
    name: &'t str,
    part: Range<usize>,
    /// Of a function.
    body: Option<Range<usize>>,
}

/// All such functions and macros. `kernels` are the parts of the text that define kernels.
pub(super) fn unusable_functions<'t>(
    text: &str,
    code: &'t str,
    kernels: &[Range<usize>],
) -> Vec<Unusable<'t>> {
    let ends = kernels.iter().map(|kernel| kernel.start).chain([code.len()]);
    let starts = [0].into_iter().chain(kernels.iter().map(|kernel| kernel.end));
    let mut between = starts.zip(ends).map(|(start, end)| start..end);
    if between.all(|part| first_use(text, code, part).is_none()) {
        return Vec::new();
    }
    let directives = Directives::of(code);
    let mut candidates = directives.macros(code);
    let outside = directives.without(code);
    candidates.extend(directives.plain_functions(code, &outside));
    with_callers(text, code, candidates)
}

fn with_callers<'t>(
    text: &str,
    code: &'t str,
    mut candidates: Vec<Candidate<'t>>,
) -> Vec<Unusable<'t>> {
    let mut found: Vec<Unusable<'t>> = Vec::new();
    loop {
        let before = found.len();
        candidates.retain(|candidate| {
            let unusable = candidate.unusable(text, code, &found);
            let stays = unusable.is_none();
            found.extend(unusable);
            stays
        });
        if found.len() == before {
            return found;
        }
    }
}

impl<'t> Candidate<'t> {
    /// This one, if it uses a feature, or may call one of those that do.
    fn unusable(&self, text: &str, code: &'t str, known: &[Unusable<'t>]) -> Option<Unusable<'t>> {
        let (name, part) = (self.name, self.part.clone());
        let own = first_use(text, code, part.clone());
        let (cause, of) = match own {
            Some(found) => (found, name),
            None => {
                let called = known.iter().find(|one| one.is_mentioned(code, part.clone()))?;
                (called.cause, called.of)
            }
        };
        let replaced = match self.body.clone() {
            None => Replaced::Nothing,
            Some(body) if own.is_some_and(|found| found.at < body.start) => Replaced::Whole(part),
            Some(body) => Replaced::Body(body),
        };
        Some(Unusable { name, replaced, cause, of })
    }
}

impl Unusable<'_> {
    /// Whether a part of the code, other than its own, may call it. A member of this name is
    /// another.
    pub(super) fn is_mentioned(&self, code: &str, part: Range<usize>) -> bool {
        words(&code[part.clone()]).any(|(at, word)| {
            let before = code[..part.start + at].trim_end();
            word == self.name && !before.ends_with('.') && !before.ends_with("->")
        })
    }

    /// The line, and what is there.
    pub(super) fn reason(&self, text: &str) -> String {
        let place = format!(" in `{}`, which the kernel may call", self.of);
        format!("{}: {}", line_of(text, self.cause.at), self.cause.reason(&place))
    }
}

/// The directives of a source, each with the lines that it goes on in.
struct Directives(Vec<Range<usize>>);

impl Directives {
    fn of(code: &str) -> Self {
        let (mut all, mut at, mut goes_on) = (Vec::<Range<usize>>::new(), 0, false);
        for line in code.split_inclusive('\n') {
            let part = at..at + line.len();
            at = part.end;
            match all.last_mut() {
                Some(last) if goes_on => last.end = part.end,
                _ if line.trim_start().starts_with('#') => all.push(part),
                _ => continue,
            }
            goes_on = line.trim_end().ends_with('\\');
        }
        Self(all)
    }

    /// The code with blanks for the directives.
    fn without(&self, code: &str) -> String {
        let mut result = String::with_capacity(code.len());
        let mut done = 0;
        for part in &self.0 {
            result.push_str(&code[done..part.start]);
            let blank = |letter| if letter == '\n' { '\n' } else { ' ' };
            result.extend(code[part.clone()].chars().map(blank));
            done = part.end;
        }
        result + &code[done..]
    }

    fn macros<'t>(&self, code: &'t str) -> Vec<Candidate<'t>> {
        let of = |part: &Range<usize>| {
            let mut words = words(&code[part.clone()]).map(|(_, word)| word);
            let name = words.next().filter(|first| *first == "define").and(words.next())?;
            Some(Candidate { name, part: part.clone(), body: None })
        };
        let all: Vec<Candidate<'t>> = self.0.iter().filter_map(of).collect();
        let count = |name: &str| all.iter().filter(|other| other.name == name).count();
        let has_one = all.iter().map(|one| count(one.name) == 1).collect::<Vec<_>>();
        let is_plain = |one: &Candidate<'_>| !self.are_conditional(code, one.part.clone());
        let with = all.into_iter().zip(has_one);
        with.filter(|(one, is_alone)| *is_alone && is_plain(one)).map(|(one, _)| one).collect()
    }

    /// The functions that can be told by name. `outside` is the code without directives.
    fn plain_functions<'t>(&self, code: &'t str, outside: &str) -> Vec<Candidate<'t>> {
        let all = functions(outside);
        let is_alone = |name: &str| all.iter().filter(|other| other.name == name).count() == 1;
        let is_plain = |function: &Function<'_>| {
            let specifier = |wanted| words(function.specifiers).any(|(_, word)| word == wanted);
            !function.is_member
                && !function.name.is_empty()
                && is_alone(function.name)
                && specifier("__device__")
                && !specifier("auto")
                && !specifier("constexpr")
                && !self.are_conditional(code, function.start..function.body.end)
        };
        let plain = all.iter().filter(|function| is_plain(function));
        let candidate = |function: &Function<'_>| Candidate {
            name: &code[function.at..function.at + function.name.len()],
            part: function.start..function.body.end,
            body: Some(function.body.clone()),
        };
        plain.map(candidate).collect()
    }

    /// Whether a part of the code is between `#if` and `#endif`, or contains such.
    fn are_conditional(&self, code: &str, part: Range<usize>) -> bool {
        let mut depth = 0_usize;
        let before = self.0.iter().take_while(|directive| directive.start < part.end);
        before.into_iter().any(|directive| {
            let word = words(&code[directive.clone()]).next().map_or("", |(_, word)| word);
            match word {
                "if" | "ifdef" | "ifndef" => depth += 1,
                "endif" => depth = depth.saturating_sub(1),
                _ => {}
            }
            directive.start >= part.start && matches!(word, "if" | "ifdef" | "ifndef")
        }) || depth > 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::left_out::without_features;

    /// The names of what is left out of a source.
    fn left_out(text: &str) -> Vec<String> {
        let kept = without_features(text, "k.cu");
        assert_eq!(kept.text.lines().count(), text.lines().count(), "{}", kept.text);
        kept.left_out.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn functions_are_left_out_with_the_kernels_that_may_call_them() {
        let text = "#define LANE(x) \\\n  lane(x)\n\
            template <int n> static __device__ int lane(int x)\n{ asm(\"mov\"); return x; }\n\
            namespace ns { __device__ int by_macro(int x) { return LANE(x); } }\n\
            __device__ float sampled(cudaTextureObject_t t,\n  int i) { return 0; }\n\
            __device__ int plain(int lane_of) { return lane_of; }\n\
            __global__ void own(int *x) { x[0] = lane<1>(1); }\n\
            __global__ void through(int *x) { x[0] = ns::by_macro(1); }\n\
            __global__ void good(int *x) { x[0] = plain(x->lane + s.lane); }\n";
        assert_eq!(left_out(text), ["own", "through", "lane", "sampled", "LANE", "by_macro"]);
        let kept = without_features(text, "k.cu");
        let said = "4: `asm` in `lane`, which the kernel may call: the embedded device has no \
                    inline PTX: use an intrinsic, or C, or give the kernel a body by `.host(..)`";
        assert_eq!(kept.left_out[1].reason, format!("k.cu:{said}"));
        assert!(
            kept.text.contains(&format!("left_out(__FILE__ \":{said}\"); }}")),
            "{}",
            kept.text
        );
        assert!(!kept.text.contains("sampled"), "{}", kept.text);
    }

    #[test]
    fn what_cannot_be_told_by_name_stays() {
        let body = "{ asm(\"mov\"); return 1; }";
        for function in [
            format!("struct S {{ __device__ int f() {body} }};"),
            format!("__device__ int f(int) {body} __device__ int f(float) {{ return 1; }}"),
            format!("__device__ int operator+(S a, S b) {body}"),
            format!("#if PTX\n__device__ int f() {body}\n#endif\n"),
            "__device__ int f() {\n#ifdef PTX\n asm(\"mov\");\n#endif\n return 1; }".to_owned(),
            format!("__device__ auto f() {body}"),
            format!("__device__ constexpr int f() {body}"),
            "#if PTX\n#define f(x) asm(\"mov\")\n#else\n#define f(x) x\n#endif\n".to_owned(),
        ] {
            let text = format!("{function}\n__global__ void k(int *x) {{ x[0] = f(1); }}\n");
            assert!(left_out(&text).is_empty(), "{text}");
        }
    }

    #[test]
    fn kernels_that_use_what_is_not_there_are_left_out() {
        let text = "extern \"C\" __global__ void good(float *x) { x[0] = 1; }\n\
            extern \"C\" __global__ void bad(cudaTextureObject_t t,\n  float *x) {\n\
            x[0] = tex1D<float>(t, 1); }\n\
            template <typename T> __global__ void also(T *x) {\n asm(\"bar.sync 0;\"); }\n\
            __global__ void fine(float *x) { asm volatile(\"\" : : : \"memory\"); x->tex2D = 1; }\n\
            __global__ void starts(int *x) { good<<<1, 1>>>(x); }\n";
        assert_eq!(left_out(text), ["bad", "also", "starts"]);
        let kept = without_features(text, "k.cu");
        assert!(
            kept.text.contains("extern \"C\" __device__ void resident_left_out_0();"),
            "{}",
            kept.text
        );
        let reasons: Vec<&str> = kept.left_out.iter().map(|one| &*one.reason).collect();
        let start = "k.cu:2: `cudaTextureObject_t`: the embedded device has no textures: pass";
        assert!(reasons[0].starts_with(start), "{reasons:?}");
        assert!(reasons[1].contains("k.cu:6: `asm`: the embedded device has no inline PTX"));
        assert!(reasons[2].contains("no launches inside kernels"), "{reasons:?}");
    }
}
