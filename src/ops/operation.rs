//! Declares each operation twice: on the current stream, and on a given one.

/// `|call| [T: Bound](a: Type) name, name_on => body;` declares both functions. Further operations
/// of the same signature follow.
macro_rules! operations {
    (
        |$call:ident| $generics:tt $arguments:tt
        $($(#[$doc:meta])* $name:ident, $name_on:ident => $body:expr;)+
    ) => {
        $($crate::ops::operation::operations! {
            @both |$call| $generics $arguments $(#[$doc])* $name, $name_on, $body
        })+
    };
    (
        @both |$call:ident|
        [$($generic:ident: $bound:ident),*] ($($argument:ident: $type:ty),+ $(,)?)
        $(#[$doc:meta])* $name:ident, $name_on:ident, $body:expr
    ) => {
        $(#[$doc])*
        #[track_caller]
        pub fn $name<$($generic: $bound),*>($($argument: $type),+) -> $crate::error::Result<()> {
            use $crate::error::AtCall as _;
            let site = resident_backend::call_site::call_site();
            let stream = $crate::device::Stream::current().at(site)?;
            let $call = &$crate::ops::call::Call { name: stringify!($name), stream: &stream, site };
            $body
        }

        #[doc = concat!("[`", stringify!($name), "`], on a stream.")]
        ///
        /// # Errors
        ///
        #[doc = concat!("As [`", stringify!($name), "`].")]
        #[track_caller]
        pub fn $name_on<$($generic: $bound),*>(
            stream: &$crate::device::Stream,
            $($argument: $type),+
        ) -> $crate::error::Result<()> {
            let site = resident_backend::call_site::call_site();
            let $call = &$crate::ops::call::Call { name: stringify!($name), stream, site };
            $body
        }
    };
}

pub(super) use operations;
