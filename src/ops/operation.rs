//! Declares each operation twice: on the current stream, and on a given one.

/// `name, name_on |call| <T: Bound>(a: Type) { body }` declares both functions.
macro_rules! operation {
    (
        $(#[$doc:meta])*
        $name:ident, $name_on:ident |$call:ident|
        <$($generic:ident: $bound:ident),*>($($argument:ident: $type:ty),+ $(,)?) $body:block
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

pub(super) use operation;
