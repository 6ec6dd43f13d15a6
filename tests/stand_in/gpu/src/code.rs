//! Results of calls: CUDA and HIP have the same numbers for what both have.

/// A CUresult, or a hipError_t.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub u32);

/// The result of a call.
pub type Outcome<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $number:literal;)*) => {
        impl Code {
            $(pub const $name: Self = Self($number);)*
        }
    };
}

codes! {
    SUCCESS = 0;
    INVALID_VALUE = 1;
    OUT_OF_MEMORY = 2;
    NOT_INITIALIZED = 3;
    NO_DEVICE = 100;
    INVALID_DEVICE = 101;
    INVALID_IMAGE = 200;
    INVALID_CONTEXT = 201;
    NO_BINARY_FOR_GPU = 209;
    ECC_UNCORRECTABLE = 214;
    PEER_ACCESS_UNSUPPORTED = 217;
    INVALID_HANDLE = 400;
    NOT_FOUND = 500;
    NOT_READY = 600;
    ILLEGAL_ADDRESS = 700;
    LAUNCH_OUT_OF_RESOURCES = 701;
    LAUNCH_TIMEOUT = 702;
    PEER_ACCESS_ALREADY_ENABLED = 704;
    PEER_ACCESS_NOT_ENABLED = 705;
    CONTEXT_IS_DESTROYED = 709;
    ASSERT = 710;
    HOST_MEMORY_ALREADY_REGISTERED = 712;
    HOST_MEMORY_NOT_REGISTERED = 713;
    LAUNCH_FAILED = 719;
    NOT_SUPPORTED = 801;
    STREAM_CAPTURE_UNSUPPORTED = 900;
    STREAM_CAPTURE_INVALIDATED = 901;
    STREAM_CAPTURE_UNMATCHED = 903;
    UNKNOWN = 999;
}
